#include "base/secret.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <new>
#include <ostream>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace {

/// Secrets in these tests have a size that nothing else has, and only one exists at a time. The
/// tests inspect its memory when it is freed.
constexpr std::size_t kWatchedSize = 4099;
void* watched_block = nullptr;
int watched_blocks_freed = 0;
int watched_blocks_wiped = 0;

}  // namespace

// These allocate and free the secret's memory, in this program only.
void* operator new[](std::size_t size) {
    void* const memory = std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc();
    if (size == kWatchedSize) watched_block = memory;
    return memory;
}

void operator delete[](void* memory) noexcept {
    if (memory != nullptr && memory == watched_block) {
        const std::span bytes(static_cast<const unsigned char*>(memory), kWatchedSize);
        const bool wiped = std::ranges::all_of(bytes, [](unsigned char b) { return b == 0; });
        watched_block = nullptr;
        ++watched_blocks_freed;
        watched_blocks_wiped += wiped ? 1 : 0;
    }
    std::free(memory);
}

void operator delete[](void* memory, std::size_t) noexcept {
    operator delete[](memory);
}

namespace nexar {
namespace {

using testing::HasSubstr;
using testing::Not;

template <class T>
concept Streamable = requires(std::ostream& out, const T& x) { out << x; };

static_assert(Streamable<std::string>, "the concept works");
static_assert(!Streamable<Secret>);
static_assert(fmt::is_formattable<std::string>::value);
static_assert(!fmt::is_formattable<Secret>::value);
static_assert(!std::ranges::range<Secret>, "ranges are formattable");
static_assert(!std::is_convertible_v<Secret, std::string_view>);
static_assert(!std::is_convertible_v<Secret, bool>);
static_assert(!std::is_copy_constructible_v<Secret> && !std::is_copy_assignable_v<Secret>);
static_assert(std::is_nothrow_move_constructible_v<Secret>);
static_assert(std::is_nothrow_move_assignable_v<Secret>);

Secret watched() {
    return Secret::filled(kWatchedSize, [](std::span<std::byte> bytes) {
        for (std::size_t i = 0; i < bytes.size(); ++i)
            bytes[i] = static_cast<std::byte>(1 + i % 255);
    });
}

std::string hex(const Secret& secret) {
    return secret.reveal([](std::span<const std::byte> bytes) {
        std::string text;
        for (const std::byte b : bytes) text += fmt::format("{:02x}", std::to_integer<int>(b));
        return text;
    });
}

class SecretMemory : public testing::Test {
protected:
    SecretMemory() {
        watched_blocks_freed = 0;
        watched_blocks_wiped = 0;
    }
};

TEST_F(SecretMemory, is_wiped_before_it_is_freed) {
    {
        const Secret secret = watched();
    }
    EXPECT_EQ(watched_blocks_freed, 1);
    EXPECT_EQ(watched_blocks_wiped, 1);
}

TEST_F(SecretMemory, is_moved_not_copied) {
    {
        Secret first = watched();
        const std::byte* const place =
            first.reveal([](std::span<const std::byte> bytes) { return bytes.data(); });
        const Secret second = std::move(first);
        EXPECT_EQ(second.size(), kWatchedSize);
        EXPECT_EQ(second.reveal([](auto bytes) { return bytes.data(); }), place);
        EXPECT_EQ(first.size(), 0U);  // NOLINT(bugprone-use-after-move): the contract of a move
        EXPECT_EQ(watched_blocks_freed, 0);
    }
    EXPECT_EQ(watched_blocks_freed, 1);
    EXPECT_EQ(watched_blocks_wiped, 1);
}

TEST_F(SecretMemory, is_wiped_when_another_secret_is_moved_in) {
    Secret secret = watched();
    secret = Secret();
    EXPECT_EQ(watched_blocks_freed, 1);
    EXPECT_EQ(watched_blocks_wiped, 1);
    EXPECT_EQ(secret.size(), 0U);
}

TEST_F(SecretMemory, survives_a_move_to_itself) {
    Secret secret = watched();
    Secret& same = secret;
    secret = std::move(same);
    EXPECT_EQ(secret.size(), kWatchedSize);
    EXPECT_EQ(watched_blocks_freed, 0);
}

TEST_F(SecretMemory, is_wiped_if_filling_it_fails_halfway) {
    std::string text(2 * kWatchedSize, 'f');
    text.back() = 'g';
    EXPECT_FALSE(Secret::from_hex(text));
    EXPECT_EQ(watched_blocks_freed, 1);
    EXPECT_EQ(watched_blocks_wiped, 1);
}

TEST(Secret, holds_the_given_bytes) {
    const std::array<std::byte, 3> bytes = {std::byte{0}, std::byte{0xab}, std::byte{0xff}};
    EXPECT_EQ(hex(Secret(bytes)), "00abff");
    EXPECT_EQ(hex(*Secret::from_hex("00aBFf")), "00abff");
    EXPECT_EQ(Secret::from_hex("")->size(), 0U);
    EXPECT_EQ(Secret().size(), 0U);
}

TEST(Secret, compares_all_bytes) {
    const auto secret = [](std::string_view text) { return *Secret::from_hex(text); };
    EXPECT_TRUE(secret("01020304") == secret("01020304"));
    EXPECT_FALSE(secret("01020304") == secret("81020304"));
    EXPECT_FALSE(secret("01020304") == secret("01020305"));
    EXPECT_FALSE(secret("01020304") == secret("010203"));
    EXPECT_FALSE(secret("0101") == secret("0202")) << "differences must not cancel";
    EXPECT_TRUE(Secret() == Secret());
    EXPECT_TRUE(secret("01") != Secret());
}

TEST(Secret, error_does_not_quote_the_text) {
    for (const std::string_view text : {"c0ffee5", "c0ffee5g", "g5c0ffee", "c0 ffee5"}) {
        const auto secret = Secret::from_hex(text);
        ASSERT_FALSE(secret) << text;
        EXPECT_EQ(secret.error().code(), Errc::invalid_argument);
        EXPECT_THAT(secret.error().what(), Not(HasSubstr("ffee")));
        EXPECT_THAT(secret.error().what(), HasSubstr("allowed: "));
    }
}

TEST(Wipe, clears_memory) {
    std::vector<std::byte> bytes(5, std::byte{7});
    wipe(std::span(bytes).first(4));
    EXPECT_EQ(bytes[0], std::byte{0});
    EXPECT_EQ(bytes[3], std::byte{0});
    EXPECT_EQ(bytes[4], std::byte{7});
    wipe({});
}

}  // namespace
}  // namespace nexar
