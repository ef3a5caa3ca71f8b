#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "describe_checks.hpp"
#include "wire/describe_seed.hpp"

/// The limits and rules of a view. The offsets are those of the example in docs/protocol.md.
namespace nexar::wire {
namespace {

using testing::changed;
using testing::encoded;
using testing::example;
using testing::expect_accepted;
using testing::expect_not_encoded;
using testing::expect_refused;
using testing::letters;
using testing::patched;

constexpr std::size_t kNextRankAt = 32;
constexpr std::size_t kMembersAt = 36;
constexpr std::size_t kFirstRankAt = 62;
constexpr std::size_t kFirstAddressesAt = 66;
constexpr std::size_t kFirstHostAt = 147;
constexpr std::size_t kSecondRankAt = 178;
constexpr std::size_t kSpentAt = 250;
constexpr std::size_t kLeftAt = 292;

TEST(ViewFrame, requires_an_epoch) {
    expect_accepted(patched(example<ViewFrame>(), 0, ~std::uint64_t{0}, 8));
    expect_refused(patched(example<ViewFrame>(), 0, 0, 8), Errc::malformed,
                   "view: epoch is 0; it must be at least 1");
    expect_not_encoded(changed<ViewFrame>([](auto& x) { x.epoch = Epoch(0); }), "epoch is 0");
}

TEST(ViewFrame, has_an_incarnation_only_with_a_witness) {
    const auto without = changed<ViewFrame>([](auto& x) {
        x.witness = Id{};
        x.witness_incarnation = 0;
    });
    expect_accepted(encoded(without));
    expect_refused(patched(without, 24, 3, 8), Errc::malformed,
                   "view: witness_incarnation is 3; it must be 0 if there is no witness");
    expect_not_encoded(changed<ViewFrame>([](auto& x) { x.witness = Id{}; }),
                       "witness_incarnation is 3");
    expect_accepted(patched(example<ViewFrame>(), 24, 0, 8));
}

TEST(ViewFrame, requires_members_in_strict_order_of_rank) {
    const auto m = example<ViewFrame>();  // ranks 0 and 2
    expect_accepted(patched(m, kFirstRankAt, 1, 4));
    for (const unsigned rank : {2U, 3U}) {
        expect_refused(patched(m, kFirstRankAt, rank, 4), Errc::malformed,
                       "view: number of members is 2; ranks must strictly ascend");
        expect_not_encoded(changed<ViewFrame>([&](auto& x) { x.members[0].rank = Rank(rank); }),
                           "number of members");
    }
}

TEST(ViewFrame, bounds_ranks) {
    const auto m = changed<ViewFrame>([](auto& x) { x.next_rank = Rank(kMaxRank); });
    expect_accepted(encoded(m));
    expect_accepted(patched(m, kSecondRankAt, kMaxRank - 1, 4));
    expect_refused(patched(m, kSecondRankAt, kMaxRank + 1, 4), Errc::limit_exceeded,
                   "view: rank is 2147483647; it must be at most 2147483646");
    expect_refused(patched(m, kSecondRankAt, 0xffffffff, 4), Errc::limit_exceeded,
                   "view: rank is 4294967295; it must be at most 2147483646");
    expect_not_encoded(changed<ViewFrame>([](auto& x) { x.members[1].rank = Rank(kMaxRank + 1); }),
                       "rank is 2147483647");
    expect_refused(patched(m, kNextRankAt, kMaxRank + 1, 4), Errc::limit_exceeded,
                   "view: next_rank is 2147483647; it must be at most 2147483646");
    expect_not_encoded(changed<ViewFrame>([](auto& x) { x.next_rank = Rank(kMaxRank + 1); }),
                       "next_rank is 2147483647");
}

// Ranks are never given twice, so the next one is above those of all members.
TEST(ViewFrame, requires_the_next_rank_to_be_above_all_members) {
    const auto m = example<ViewFrame>();  // ranks 0 and 2
    expect_accepted(patched(m, kNextRankAt, 3, 4));
    for (const unsigned rank : {0U, 1U, 2U}) {
        expect_refused(patched(m, kNextRankAt, rank, 4), Errc::malformed,
                       "view: next_rank is " + std::to_string(rank) +
                           "; it must be above the ranks of all members");
        expect_not_encoded(changed<ViewFrame>([&](auto& x) { x.next_rank = Rank(rank); }),
                           "next_rank is " + std::to_string(rank));
    }
    expect_accepted(encoded(ViewFrame{.epoch = Epoch(1)}));
}

TEST(ViewFrame, may_be_empty_and_checks_its_addresses) {
    const auto m = example<ViewFrame>();
    expect_accepted(encoded(changed<ViewFrame>([](auto& x) { x.members.clear(); })));
    expect_accepted(encoded(changed<ViewFrame>([](auto& x) { x.members[1].addresses.clear(); })));
    expect_refused(patched(m, kFirstAddressesAt + 4, 'x', 1), Errc::malformed,
                   "view: address length is");
    expect_refused(patched(m, kFirstAddressesAt, 17, 2), Errc::limit_exceeded,
                   "view: addresses has 17 entries");
    expect_not_encoded(changed<ViewFrame>([](auto& x) { x.members[1].addresses[0].text = ""; }),
                       "none of them may be empty");
}

TEST(ViewFrame, bounds_and_checks_the_host_of_a_member) {
    const auto m = example<ViewFrame>();
    expect_accepted(encoded(changed<ViewFrame>([](auto& x) { x.members[0].host = letters(64); })));
    expect_refused(patched(m, kFirstHostAt, 65, 2), Errc::limit_exceeded,
                   "view: host has 65 bytes; the limit is 64");
    expect_refused(patched(m, kFirstHostAt + 2, '\x1b', 1), Errc::malformed,
                   "view: host is invalid at byte 0");
    expect_not_encoded(changed<ViewFrame>([](auto& x) { x.members[1].host = letters(65); }),
                       "host has 65 bytes");
}

TEST(ViewFrame, accepts_every_key_hash_and_token) {
    const auto m = example<ViewFrame>();
    for (const std::size_t at : {kFirstHostAt - 16, kFirstHostAt - 48}) {
        expect_accepted(patched(m, at, 0, 8));
        expect_accepted(patched(m, at, ~std::uint64_t{0}, 8));
    }
}

TEST(ViewFrame, bounds_the_number_of_members) {
    expect_refused(patched(example<ViewFrame>(), kMembersAt, 16385, 2), Errc::limit_exceeded,
                   "view: members has 16385 entries; the limit is 16384");
    expect_refused(patched(example<ViewFrame>(), kMembersAt, 16384, 2), Errc::malformed,
                   "view: the input ends inside members: 264 left, 1310720 needed");
    ViewFrame large = example<ViewFrame>();
    large.next_rank = Rank(20'000);
    large.members.resize(16385);
    for (std::uint32_t i = 0; i < 16385; ++i) large.members[i].rank = Rank(i);
    expect_not_encoded(large, "members has 16385 entries");
    large.members.pop_back();
    expect_accepted(encoded(large));
}

TEST(ViewFrame, requires_spent_tokens_in_strict_order) {
    const auto m = example<ViewFrame>();  // tokens from 30 and from 50
    expect_accepted(patched(m, kSpentAt + 2, 0x4f, 1));
    for (const unsigned first : {0x51U, 0xffU}) {
        expect_refused(patched(m, kSpentAt + 2, first, 1), Errc::malformed,
                       "view: number of spent tokens is 2; ids must strictly ascend");
    }
    expect_not_encoded(changed<ViewFrame>([](auto& x) { x.spent[0].token = x.spent[1].token; }),
                       "number of spent tokens is 2");
    expect_refused(patched(m, kSpentAt, 16385, 2), Errc::limit_exceeded,
                   "view: spent has 16385 entries; the limit is 16384");
    expect_refused(patched(m, kSpentAt, 16384, 2), Errc::malformed,
                   "view: the input ends inside spent: 50 left, 327680 needed");
}

TEST(ViewFrame, requires_the_ranks_that_left_in_strict_order) {
    const auto m = example<ViewFrame>();  // 1 and 3
    expect_accepted(patched(m, kLeftAt + 2, 2, 4));
    expect_accepted(patched(m, kLeftAt + 6, kMaxRank, 4));
    for (const unsigned rank : {3U, 4U}) {
        expect_refused(patched(m, kLeftAt + 2, rank, 4), Errc::malformed,
                       "view: number of ranks that left is 2; ranks must strictly ascend");
        expect_not_encoded(changed<ViewFrame>([&](auto& x) { x.left[0] = Rank(rank); }),
                           "number of ranks that left is 2");
    }
    expect_refused(patched(m, kLeftAt + 6, kMaxRank + 1, 4), Errc::limit_exceeded,
                   "view: rank is 2147483647; it must be at most 2147483646");
    expect_refused(patched(m, kLeftAt, 16385, 2), Errc::limit_exceeded,
                   "view: left has 16385 entries; the limit is 16384");
    expect_refused(patched(m, kLeftAt, 16384, 2), Errc::malformed,
                   "view: the input ends inside left: 8 left, 65536 needed");
}

}  // namespace
}  // namespace nexar::wire
