#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <nexar/error.hpp>
#include <nexar/result.hpp>
#include <nexar/version.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"

namespace nexar {
namespace {

static_assert(std::is_nothrow_copy_constructible_v<Error>, "an exception's copy must not throw");

Result<int> half(int x) {
    if (x % 2 != 0) return Error(Errc::invalid_argument, "7 is odd");
    return x / 2;
}

Result<int> quarter(int x) {
    NEXAR_TRY_VALUE(once, half(x));
    NEXAR_TRY_VALUE(twice, half(once));
    return twice;
}

Result<void> must_be_even(int x) {
    NEXAR_TRY(half(x));
    return {};
}

TEST(Error, message_contains_exactly_the_known_context) {
    const Error bare(Errc::malformed, "the frame ends after 3 of 8 bytes");
    EXPECT_STREQ(bare.what(), "malformed: the frame ends after 3 of 8 bytes");

    const Error full(
        Errc::out_of_memory, "no 8 MiB left",
        {.rank = 3, .host = "node7", .operation = "all_reduce", .sequence = Sequence(12)});
    EXPECT_STREQ(full.what(),
                 "out_of_memory: no 8 MiB left [rank 3, host node7, operation all_reduce, "
                 "sequence 12]");
    EXPECT_EQ(full.rank(), 3);
    EXPECT_EQ(full.host(), "node7");
    EXPECT_EQ(full.operation(), "all_reduce");
    EXPECT_EQ(full.sequence(), Sequence(12));
}

TEST(Error, an_abort_keeps_its_code_and_its_rank) {
    const Error aborted(Errc::aborted,
                        "rank 2 aborted the program with code 3: the input file has no header",
                        {.rank = 2, .abort_code = 3});
    EXPECT_STREQ(aborted.what(),
                 "aborted: rank 2 aborted the program with code 3: the input file has no header");
    const Error inside = aborted.within({.rank = 1, .operation = "receive"});
    EXPECT_EQ(inside.rank(), 2);
    EXPECT_EQ(inside.abort_code(), 3);
    EXPECT_EQ(inside.operation(), "receive");
    EXPECT_FALSE(Error(Errc::closed, "x").abort_code().has_value());
    EXPECT_EQ(name(Errc::aborted), "aborted");
}

TEST(Error, within_adds_only_missing_context) {
    const Error inner(Errc::malformed, "x", {.operation = "decode"});
    const Error outer = inner.within({.rank = 1, .operation = "all_reduce"});
    EXPECT_EQ(outer.operation(), "decode");
    EXPECT_EQ(outer.rank(), 1);
    EXPECT_EQ(outer.code(), Errc::malformed);
    EXPECT_FALSE(inner.rank().has_value());
}

TEST(Error, every_code_has_a_name_and_a_remedy_by_its_group) {
    EXPECT_EQ(name(Errc::bad_config), "bad_config");
    EXPECT_EQ(name(static_cast<Errc>(999)), "unknown");
    EXPECT_EQ(remedy(Errc::unsupported), Remedy::own_fault);
    EXPECT_EQ(remedy(Errc::version_mismatch), Remedy::give_up);
    EXPECT_EQ(name(Errc::unauthenticated), "unauthenticated");
    EXPECT_EQ(remedy(Errc::unauthenticated), Remedy::give_up);
    EXPECT_EQ(remedy(Errc::out_of_memory), Remedy::retry);
    EXPECT_EQ(name(Errc::unknown_function), "unknown_function");
    EXPECT_EQ(name(Errc::not_allowed), "not_allowed");
    EXPECT_EQ(name(Errc::function_failed), "function_failed");
    EXPECT_EQ(name(Errc::outcome_unknown), "outcome_unknown");
    EXPECT_NE(remedy(Errc::outcome_unknown), Remedy::retry) << "it may have run";
    EXPECT_EQ(name(Errc::overloaded), "overloaded");
    EXPECT_EQ(remedy(Errc::overloaded), Remedy::retry);
    EXPECT_EQ(remedy(Errc::cancelled), Remedy::stopped);
    EXPECT_EQ(remedy(Errc::aborted), Remedy::stopped);
}

TEST(Error, codes_of_membership_ask_for_recovery) {
    const std::array<std::pair<Errc, std::string_view>, 5> codes{
        {{Errc::membership_changed, "membership_changed"},
         {Errc::minority_partition, "minority_partition"},
         {Errc::peer_unreachable, "peer_unreachable"},
         {Errc::revoked, "revoked"},
         {Errc::evicted, "evicted"}}};
    std::uint16_t number = 500;
    for (const auto& [code, text] : codes) {
        EXPECT_EQ(static_cast<std::uint16_t>(code), number++) << text;
        EXPECT_EQ(name(code), text);
        EXPECT_EQ(remedy(code), Remedy::recover) << text;
    }
    EXPECT_EQ(remedy(static_cast<Errc>(599)), Remedy::recover) << "of a later build";
}

TEST(Result, carries_a_value_or_an_error_through_try) {
    EXPECT_EQ(*quarter(12), 3);
    EXPECT_EQ(quarter(14).error().code(), Errc::invalid_argument);
    EXPECT_TRUE(must_be_even(2));
    EXPECT_EQ(must_be_even(3).error().cause(), "7 is odd");
}

TEST(Result, value_throws_the_error) {
    EXPECT_THROW((void)half(3).value(), Error);
    EXPECT_THROW(must_be_even(3).value(), Error);
    EXPECT_EQ(half(8).value(), 4);
}

TEST(Result, holds_move_only_values) {
    Result<std::unique_ptr<int>> r(std::make_unique<int>(5));
    const std::unique_ptr<int> p = *std::move(r);
    EXPECT_EQ(*p, 5);
}

TEST(ResultDeathTest, accessing_a_missing_value_aborts_with_the_error) {
    EXPECT_DEATH((void)*half(3), "accessed: invalid_argument: 7 is odd");
    EXPECT_DEATH((void)half(4).error(), "holds a value");
}

TEST(AssertDeathTest, prints_condition_location_and_reason) {
    EXPECT_DEATH(NEXAR_ASSERT(1 + 1 == 3, "arithmetic"),
                 "error_test.cpp:[0-9]+: 1 \\+ 1 == 3: arithmetic");
}

TEST(Version, is_three_numbers) {
    int dots = 0;
    for (const char c : version()) dots += c == '.' ? 1 : 0;
    EXPECT_EQ(dots, 2);
}

}  // namespace
}  // namespace nexar
