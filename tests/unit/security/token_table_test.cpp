#include "security/token_table.hpp"
#include "unit/security/now.hpp"

#include <gmock/gmock.h>
#include <gnutls/crypto.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace nexar::security {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

TokenId token_id(std::uint32_t number) {
    std::array<std::byte, TokenId::kBytes> bytes{};
    for (std::size_t i = 0; i < 4; ++i) bytes[i] = static_cast<std::byte>(number >> (8 * i));
    return TokenId(bytes);
}

class TokenTableTest : public ::testing::Test {
protected:
    Result<void> check(const NewToken& shown, std::uint32_t used = 0, WallTime now = kNow) const {
        return shown.secret.reveal([&](std::span<const std::byte> bytes) {
            return table_.check(shown.token.id, bytes, used, now);
        });
    }
    std::string why_not(const NewToken& shown, std::uint32_t used = 0, WallTime now = kNow) const {
        const auto checked = check(shown, used, now);
        if (checked) return "admitted";
        EXPECT_EQ(checked.error().code(), Errc::unauthenticated);
        EXPECT_THAT(checked.error().what(), HasSubstr("`nexar token create`"));
        return checked.error().what();
    }

    TokenTable table_;
};

TEST_F(TokenTableTest, admits_a_joiner_that_presents_the_secret) {
    const auto made = table_.create({}, kNow).value();
    EXPECT_TRUE(check(made));
    EXPECT_TRUE(check(made, 0, kNow + 1h - 1ns));
    EXPECT_EQ(made.secret.size(), kTokenSecretBytes);
}

TEST_F(TokenTableTest, stores_the_hash_of_the_secret_and_not_the_secret) {
    const auto made = table_.create({.uses = 3, .life = 90s}, kNow + 700ms).value();
    std::array<std::byte, 32> digest{};
    made.secret.reveal([&](std::span<const std::byte> bytes) {
        ASSERT_EQ(gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.data(), bytes.size(), digest.data()),
                  0);
    });
    const Token* kept = table_.find(made.token.id);
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(*kept, made.token);
    EXPECT_EQ(kept->secret_hash, digest);
    EXPECT_EQ(kept->uses, 3U);
    EXPECT_EQ(kept->created_at, kNow) << "whole seconds, as files store them";
    EXPECT_EQ(kept->expires_at, kNow + 90s);
    EXPECT_FALSE(kept->revoked);
}

TEST_F(TokenTableTest, creates_a_new_id_and_secret_each_time) {
    const auto one = table_.create({}, kNow).value();
    const auto two = table_.create({}, kNow).value();
    EXPECT_NE(one.token.id, two.token.id);
    EXPECT_FALSE(one.secret == two.secret);
    EXPECT_NE(one.token.secret_hash, two.token.secret_hash);
    EXPECT_EQ(table_.all().size(), 2U);
}

TEST_F(TokenTableTest, gives_the_same_error_for_a_wrong_secret_and_an_unknown_token) {
    const auto made = table_.create({}, kNow).value();
    const auto other = table_.create({}, kNow).value();
    const NewToken wrong{.token = made.token, .secret = Secret(std::array<std::byte, 32>{})};
    NewToken unknown{.token = {.id = token_id(7)}, .secret = Secret(std::array<std::byte, 32>{})};
    EXPECT_THAT(why_not(unknown), HasSubstr("it presented an unknown token"));
    EXPECT_EQ(why_not(wrong), why_not(unknown));
    const auto swapped = other.secret.reveal([&](std::span<const std::byte> bytes) {
        return table_.check(made.token.id, bytes, 0, kNow);
    });
    EXPECT_EQ(swapped.error().what(), why_not(unknown));
    for (const std::size_t size : {0U, 31U}) {
        const auto cut = made.secret.reveal([&](std::span<const std::byte> bytes) {
            return table_.check(made.token.id, bytes.first(size), 0, kNow);
        });
        ASSERT_FALSE(cut);
        EXPECT_EQ(cut.error().what(), why_not(unknown));
    }
    // A joiner that does not know the secret does not learn the state of the token either.
    ASSERT_TRUE(table_.revoke(made.token.id));
    EXPECT_EQ(why_not(wrong), why_not(unknown));
    EXPECT_EQ(why_not(wrong, 5, kNow + 2h), why_not(unknown));
}

TEST_F(TokenTableTest, refuses_a_token_from_the_moment_it_expires) {
    const auto made = table_.create({.life = 10min}, kNow).value();
    EXPECT_TRUE(check(made, 0, kNow + 10min - 1ns));
    EXPECT_THAT(why_not(made, 0, kNow + 10min), HasSubstr("a token that expired 0 s ago"));
    EXPECT_THAT(why_not(made, 0, kNow + 3h), HasSubstr("a token that expired 2 h ago"));
}

TEST_F(TokenTableTest, refuses_a_revoked_token) {
    const auto made = table_.create({.uses = 9}, kNow).value();
    const auto other = table_.create({}, kNow).value();
    ASSERT_TRUE(table_.revoke(made.token.id));
    EXPECT_THAT(why_not(made), HasSubstr("it presented a revoked token"));
    EXPECT_TRUE(check(other));
    EXPECT_TRUE(table_.revoke(made.token.id)) << "revoking twice is not an error";
    EXPECT_TRUE(table_.find(made.token.id)->revoked);
}

TEST_F(TokenTableTest, cannot_revoke_an_unknown_token) {
    const auto refused = table_.revoke(token_id(0xabcdef));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code(), Errc::invalid_argument);
    EXPECT_THAT(refused.error().what(), HasSubstr(token_id(0xabcdef).to_hex()));
    EXPECT_THAT(refused.error().what(), HasSubstr("`nexar token list`"));
    EXPECT_TRUE(table_.all().empty());
}

TEST_F(TokenTableTest, limits_the_number_of_uses) {
    const auto once = table_.create({}, kNow).value();
    EXPECT_TRUE(check(once, 0));
    EXPECT_THAT(why_not(once, 1), HasSubstr("already used 1 of 1 times"));
    const auto thrice = table_.create({.uses = 3}, kNow).value();
    EXPECT_TRUE(check(thrice, 2));
    EXPECT_THAT(why_not(thrice, 3), HasSubstr("already used 3 of 3 times"));
    EXPECT_THAT(why_not(thrice, ~0U), HasSubstr("already used"));
}

TEST_F(TokenTableTest, creates_tokens_only_within_the_limits) {
    const auto refused = [&](const TokenTerms& terms) {
        const auto made = table_.create(terms, kNow);
        EXPECT_FALSE(made);
        EXPECT_EQ(made.error().code(), Errc::invalid_argument);
        return std::string(made.error().what());
    };
    EXPECT_THAT(refused({.uses = 0}), HasSubstr("a token for 0 uses was requested; allowed: 1 to"));
    EXPECT_THAT(refused({.uses = (1U << 20U) + 1}), HasSubstr("1048577 uses"));
    EXPECT_THAT(refused({.life = 0s}), HasSubstr("allowed: 1 s to 365 days"));
    EXPECT_THAT(refused({.life = -5s}), HasSubstr("a token for -5 s"));
    EXPECT_THAT(refused({.life = std::chrono::seconds(365 * 24h) + 1s}), HasSubstr("365 days"));
    EXPECT_THAT(refused({.life = std::chrono::seconds::max()}), HasSubstr("365 days"));
    EXPECT_TRUE(table_.all().empty());
    EXPECT_TRUE(table_.create({.uses = 1U << 20U, .life = 365 * 24h}, kNow));
    EXPECT_TRUE(table_.create({.uses = 1, .life = 1s}, kNow));
}

TEST_F(TokenTableTest, is_full_until_old_tokens_are_removed) {
    for (std::uint32_t i = 0; i < TokenTable::kMaxTokens; ++i) {
        table_.put({.id = token_id(i), .created_at = kNow, .expires_at = kNow + 1h});
    }
    const auto week_later = kNow + 1h + 7 * 24h;
    for (const WallTime now : {kNow, week_later}) {
        const auto made = table_.create({}, now);
        ASSERT_FALSE(made);
        EXPECT_EQ(made.error().code(), Errc::limit_exceeded);
        EXPECT_THAT(made.error().what(), HasSubstr("already 16384 tokens"));
    }
    EXPECT_EQ(table_.all().size(), TokenTable::kMaxTokens)
        << "tokens that expired less than a week ago stay";
    const auto made = table_.create({}, week_later + 1s);
    ASSERT_TRUE(made);
    EXPECT_EQ(table_.all().size(), 1U);
    EXPECT_NE(table_.find(made->token.id), nullptr);
}

TEST_F(TokenTableTest, keeps_a_token_that_never_expires) {
    table_.put({.id = token_id(1), .expires_at = WallTime::max()});
    ASSERT_TRUE(table_.create({}, kNow));
    EXPECT_NE(table_.find(token_id(1)), nullptr);
}

TEST_F(TokenTableTest, replaces_a_token_that_is_put_again) {
    table_.put({.id = token_id(1), .uses = 1});
    table_.put({.id = token_id(1), .uses = 5});
    EXPECT_EQ(table_.all().size(), 1U);
    EXPECT_EQ(table_.find(token_id(1))->uses, 5U);
    EXPECT_EQ(table_.find(token_id(2)), nullptr);
}

}  // namespace
}  // namespace nexar::security
