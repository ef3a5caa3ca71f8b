#include "engine/address_race.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace nexar::engine {
namespace {

using port::LinkId;
using std::chrono::milliseconds;
using std::chrono::seconds;

std::vector<Address> addresses(unsigned count) {
    std::vector<Address> made;
    for (unsigned i = 0; i < count; ++i) {
        made.push_back(Address::parse(fmt::format("10.0.0.{}:7400", i + 1)).value());
    }
    return made;
}

/// Dials whatever the race asks for; link ids are 1, 2, ... in the order of the dials.
class Race : public ::testing::Test {
protected:
    struct Dialed {
        std::size_t place = 0;
        TimePoint at{};
    };

    void begin(unsigned count) {
        race_.begin(now_, addresses(count));
        dial();
    }
    void dial(bool may_repeat = true) {
        while (const auto attempt = race_.next(now_, may_repeat)) {
            EXPECT_EQ(attempt->address, addresses(9)[attempt->place]);
            dials_.push_back({attempt->place, now_});
            if (const auto surplus = race_.dialed(now_, *attempt, LinkId(dials_.size()))) {
                surplus_.push_back(surplus->value());
            }
        }
    }
    void pass(Duration span, bool may_repeat = true) {
        now_ += span;
        dial(may_repeat);
    }
    std::string places() const {
        std::string all;
        for (const Dialed& one : dials_) all += fmt::format("{}", one.place);
        return all;
    }

    TimePoint now_ = TimePoint(seconds(100));
    AddressRace race_{AddressRace::Options{}};
    std::vector<Dialed> dials_;
    std::vector<std::uint64_t> surplus_;
};

TEST_F(Race, dials_nothing_before_it_begins) {
    dial();
    EXPECT_TRUE(dials_.empty());
    EXPECT_FALSE(race_.running());
    EXPECT_FALSE(race_.exhausted());
}

TEST_F(Race, gives_each_address_a_head_start_before_the_next_one) {
    begin(3);
    EXPECT_EQ(places(), "0");
    EXPECT_EQ(race_.due(), now_ + milliseconds(50));
    pass(milliseconds(49));
    EXPECT_EQ(places(), "0");
    pass(milliseconds(1));
    EXPECT_EQ(places(), "01");
    pass(milliseconds(50));
    EXPECT_EQ(places(), "012");
    EXPECT_TRUE(race_.all_dialed());
}

TEST_F(Race, may_let_the_last_address_wait_for_longer) {
    race_.begin(now_, addresses(3), milliseconds(400));
    dial();
    pass(milliseconds(50));
    EXPECT_EQ(places(), "01");
    EXPECT_EQ(race_.due(), TimePoint(seconds(100)) + milliseconds(400));
    pass(milliseconds(349));
    EXPECT_EQ(places(), "01");
    pass(milliseconds(1));
    EXPECT_EQ(places(), "012");
    now_ = TimePoint(seconds(101));
    dial();
    pass(milliseconds(50));
    EXPECT_EQ(places(), "01201");
    pass(milliseconds(349));
    EXPECT_EQ(places(), "01201");
    pass(milliseconds(1));
    EXPECT_EQ(places(), "012012");
}

TEST_F(Race, dials_the_last_address_at_once_when_all_attempts_have_failed) {
    race_.begin(now_, addresses(2), milliseconds(400));
    dial();
    race_.ended(LinkId(1));
    dial();
    EXPECT_EQ(places(), "01");
}

TEST_F(Race, dials_an_address_without_others_at_once) {
    race_.begin(now_, addresses(1), milliseconds(400));
    dial();
    EXPECT_EQ(places(), "0");
}

TEST_F(Race, dials_the_next_address_at_once_when_all_attempts_have_failed) {
    begin(3);
    race_.ended(LinkId(1));
    dial();
    EXPECT_EQ(places(), "01");
    pass(milliseconds(50));
    race_.ended(LinkId(2));
    dial();
    EXPECT_EQ(places(), "012") << "the third attempt is still in flight";
}

TEST_F(Race, an_address_that_cannot_be_dialed_does_not_delay_the_next_one) {
    race_.begin(now_, addresses(3));
    const auto first = race_.next(now_);
    ASSERT_TRUE(first.has_value());
    race_.dialed(now_, *first, LinkId(7));
    now_ += milliseconds(50);
    ASSERT_EQ(race_.next(now_)->place, 1U);
    race_.failed(now_);
    const auto third = race_.next(now_);
    ASSERT_TRUE(third.has_value());
    EXPECT_EQ(third->place, 2U);
}

TEST_F(Race, repeats_silent_addresses_after_one_second_and_then_every_two) {
    begin(2);
    pass(milliseconds(50));
    EXPECT_EQ(places(), "01");
    EXPECT_EQ(race_.due(), TimePoint(seconds(101)));
    now_ = TimePoint(seconds(101));
    dial();
    EXPECT_EQ(places(), "010");
    EXPECT_EQ(race_.pass_began_at(), now_);
    pass(milliseconds(50));
    EXPECT_EQ(places(), "0101");
    EXPECT_EQ(race_.due(), TimePoint(seconds(103)));
    now_ = TimePoint(seconds(103));
    dial();
    EXPECT_EQ(places(), "01010");
}

TEST_F(Race, does_not_repeat_while_the_owner_forbids_it) {
    begin(1);
    pass(seconds(5), false);
    EXPECT_EQ(places(), "0");
    dial();
    EXPECT_EQ(places(), "00");
}

TEST_F(Race, gives_up_the_oldest_attempt_at_an_address_beyond_the_third) {
    begin(1);
    for (int i = 0; i < 2; ++i) pass(seconds(2));
    EXPECT_TRUE(surplus_.empty());
    pass(seconds(2));
    EXPECT_EQ(surplus_, std::vector<std::uint64_t>{1});
    race_.ended(LinkId(3));
    pass(seconds(2));
    EXPECT_EQ(surplus_.size(), 1U) << "only three are in flight";
    pass(seconds(2));
    EXPECT_EQ(surplus_.back(), 2U);
}

TEST_F(Race, is_exhausted_when_every_attempt_at_every_address_has_ended) {
    begin(2);
    pass(milliseconds(50));
    race_.ended(LinkId(1));
    EXPECT_FALSE(race_.exhausted());
    race_.ended(LinkId(99));
    EXPECT_FALSE(race_.exhausted());
    race_.ended(LinkId(2));
    EXPECT_TRUE(race_.exhausted());
    EXPECT_FALSE(race_.next(now_ + seconds(9)).has_value()) << "no attempt is in flight any more";
}

TEST_F(Race, a_round_without_addresses_is_exhausted_at_once) {
    begin(0);
    EXPECT_TRUE(race_.exhausted());
}

TEST_F(Race, pauses_between_rounds_double_up_to_the_longest) {
    std::vector<Duration> pauses;
    for (int i = 0; i < 7; ++i) {
        race_.begin(now_, {});
        race_.end_round(now_);
        EXPECT_FALSE(race_.running());
        pauses.push_back(race_.next_round_at() - now_);
    }
    const std::vector<Duration> expected{milliseconds(100), milliseconds(200),  milliseconds(400),
                                         milliseconds(800), milliseconds(1600), milliseconds(2000),
                                         milliseconds(2000)};
    EXPECT_EQ(pauses, expected);
    race_.reset_pause();
    race_.end_round(now_);
    EXPECT_EQ(race_.next_round_at(), now_ + milliseconds(100));
}

TEST_F(Race, a_longer_pause_holds_for_the_next_round) {
    race_.lengthen_pause(seconds(1));
    race_.end_round(now_);
    EXPECT_EQ(race_.due(), now_ + seconds(1));
}

TEST_F(Race, stopping_forgets_attempts_and_sets_the_next_round) {
    begin(2);
    race_.stop_until(now_ + seconds(3));
    EXPECT_FALSE(race_.dialing());
    EXPECT_FALSE(race_.next(now_ + seconds(9)).has_value());
    EXPECT_EQ(race_.next_round_at(), now_ + seconds(3));
    now_ += seconds(3);
    begin(2);
    EXPECT_EQ(places(), "00");
}

}  // namespace
}  // namespace nexar::engine
