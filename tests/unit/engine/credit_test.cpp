#include "engine/credit.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <limits>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar::engine {
namespace {

constexpr Amount kLimit{.payload = 1000, .headers = 8};
constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();

TEST(CreditOut, can_be_taken_up_to_its_limit) {
    CreditOut credit(kLimit);
    EXPECT_TRUE(credit.take({.payload = 600, .headers = 1}));
    EXPECT_FALSE(credit.take({.payload = 401, .headers = 1}));
    EXPECT_TRUE(credit.take({.payload = 400, .headers = 6}));
    EXPECT_FALSE(credit.take({.payload = 0, .headers = 2}));
    EXPECT_TRUE(credit.take({.payload = 0, .headers = 1}));
    EXPECT_FALSE(credit.take({.payload = 0, .headers = 1}));
    EXPECT_TRUE(credit.take({}));
}

TEST(CreditOut, takes_nothing_when_payload_or_headers_run_short) {
    CreditOut credit(kLimit);
    EXPECT_FALSE(credit.take({.payload = 1, .headers = 9}));
    EXPECT_FALSE(credit.take({.payload = 1001, .headers = 1}));
    EXPECT_TRUE(credit.take(kLimit));
}

TEST(CreditOut, accepts_back_no_more_than_was_taken) {
    CreditOut credit(kLimit);
    EXPECT_FALSE(credit.give_back(1, 0));
    EXPECT_FALSE(credit.give_back(0, 1));
    ASSERT_TRUE(credit.take({.payload = 100, .headers = 2}));
    EXPECT_FALSE(credit.give_back(101, 1));
    EXPECT_FALSE(credit.give_back(100, 3));
    EXPECT_FALSE(credit.give_back(kMost, 1));
    EXPECT_FALSE(credit.give_back(1, std::numeric_limits<std::uint32_t>::max()));
    EXPECT_TRUE(credit.give_back(60, 1));
    EXPECT_FALSE(credit.give_back(41, 1));
    EXPECT_TRUE(credit.give_back(40, 1));
    EXPECT_FALSE(credit.give_back(0, 1));
    EXPECT_TRUE(credit.take(kLimit));
}

TEST(CreditIn, refuses_more_than_its_limit) {
    CreditIn credit(kLimit);
    EXPECT_FALSE(credit.came({.payload = 1001, .headers = 1}));
    EXPECT_FALSE(credit.came({.payload = kMost, .headers = 1}));
    EXPECT_TRUE(credit.came({.payload = 1000, .headers = 1}));
    EXPECT_FALSE(credit.came({.payload = 1, .headers = 1}));
    EXPECT_TRUE(credit.came({.payload = 0, .headers = 7}));
    EXPECT_FALSE(credit.came({.payload = 0, .headers = 1}));
}

TEST(CreditIn, counts_matched_messages_until_their_credit_is_returned) {
    CreditIn credit(kLimit);
    ASSERT_TRUE(credit.came({.payload = 1000, .headers = 1}));
    EXPECT_TRUE(credit.matched({.payload = 1000, .headers = 1}));
    EXPECT_FALSE(credit.came({.payload = 1, .headers = 1})) << "the sender cannot know yet";
    EXPECT_EQ(credit.owed().payload, 1000U);
    EXPECT_EQ(credit.owed().headers, 1U);
    credit.gave_back();
    EXPECT_EQ(credit.owed().payload, 0U);
    EXPECT_EQ(credit.owed().headers, 0U);
    EXPECT_TRUE(credit.came({.payload = 1000, .headers = 8}));
}

TEST(CreditIn, is_returned_a_quarter_at_a_time) {
    CreditIn bytes(kLimit);
    ASSERT_TRUE(bytes.came({.payload = 1000, .headers = 2}));
    EXPECT_FALSE(bytes.matched({.payload = 249, .headers = 0}));
    EXPECT_TRUE(bytes.matched({.payload = 1, .headers = 0}));

    CreditIn headers(kLimit);
    ASSERT_TRUE(headers.came({.payload = 0, .headers = 2}));
    EXPECT_FALSE(headers.matched({.payload = 0, .headers = 1}));
    EXPECT_TRUE(headers.matched({.payload = 0, .headers = 1}));
}

TEST(CreditIn, is_returned_at_once_when_the_limit_is_one_header) {
    CreditIn credit({.payload = 1000, .headers = 1});
    ASSERT_TRUE(credit.came({.payload = 1, .headers = 1}));
    EXPECT_TRUE(credit.matched({.payload = 1, .headers = 1}));
}

TEST(CreditInDeathTest, never_returns_more_than_arrived) {
    CreditIn credit(kLimit);
    credit.matched({.payload = 1, .headers = 1});
    EXPECT_DEATH(credit.gave_back(), "owed");
}

TEST(Credit, both_sides_agree_and_a_sender_never_waits_forever) {
    Random random(test_seed(7));
    CreditOut out(kLimit);
    CreditIn in(kLimit);
    std::deque<Amount> unmatched;
    std::uint64_t sent = 0;
    for (int i = 0; i < 100'000; ++i) {
        const Amount charge{.payload = random.below(300), .headers = 1};
        if (out.take(charge)) {
            ASSERT_TRUE(in.came(charge));
            unmatched.push_back(charge);
            ++sent;
        } else {
            // A message without payload can always be sent once all earlier ones are matched.
            ASSERT_TRUE(!unmatched.empty() || out.take({.payload = 0, .headers = 1}));
            if (unmatched.empty()) {
                ASSERT_TRUE(in.came({.payload = 0, .headers = 1}));
                unmatched.push_back({.payload = 0, .headers = 1});
            }
        }
        if (unmatched.empty() || random.chance(0.4)) continue;
        const auto at =
            unmatched.begin() + static_cast<std::ptrdiff_t>(random.below(unmatched.size()));
        if (in.matched(*at)) {
            ASSERT_TRUE(out.give_back(in.owed().payload, in.owed().headers));
            in.gave_back();
        }
        unmatched.erase(at);
    }
    EXPECT_GT(sent, 10'000U);
}

}  // namespace
}  // namespace nexar::engine
