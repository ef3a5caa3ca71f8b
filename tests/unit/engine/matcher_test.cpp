#include "engine/matcher.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <list>
#include <memory>

#include "base/random.hpp"
#include "support/seed.hpp"

namespace nexar::engine {
namespace {

using ::testing::ElementsAre;

constexpr std::uint32_t kWorld = 4;

/// The matching rules in their simplest form: two lists, searched from the front.
class PlainMatcher {
public:
    PostedReceive* take_posted(Rank source, Tag tag) {
        for (PostedReceive* receive : posted) {
            if (!receive->pattern.fits(source, tag)) continue;
            posted.remove(receive);
            return receive;
        }
        return nullptr;
    }
    Arrived* find(const Pattern& pattern) const {
        for (Arrived* message : arrived) {
            if (pattern.fits(message->source, message->tag)) return message;
        }
        return nullptr;
    }

    std::list<PostedReceive*> posted;
    std::list<Arrived*> arrived;
};

struct Both {
    Matcher matcher{kWorld, 99};
    PlainMatcher plain;
    std::deque<PostedReceive> receives;
    std::deque<Arrived> messages;

    void post(const Pattern& pattern) {
        Arrived* found = matcher.find(pattern);
        ASSERT_EQ(found, plain.find(pattern));
        if (found != nullptr) {
            matcher.remove(*found);
            plain.arrived.remove(found);
            return;
        }
        PostedReceive& receive = receives.emplace_back();
        receive.pattern = pattern;
        matcher.add(receive);
        plain.posted.push_back(&receive);
    }
    void arrive(Rank source, Tag tag) {
        PostedReceive* found = matcher.take_posted(source, tag);
        ASSERT_EQ(found, plain.take_posted(source, tag));
        if (found != nullptr) return;
        Arrived& message = messages.emplace_back();
        message.source = source;
        message.tag = tag;
        matcher.add(message);
        plain.arrived.push_back(&message);
    }
};

/// Either may be a wildcard.
Pattern random_pattern(Random& random, Rank source, Tag tag) {
    Pattern pattern{.source = source, .tag = tag};
    if (random.chance(0.3)) pattern.source.reset();
    if (random.chance(0.3)) pattern.tag.reset();
    return pattern;
}

TEST(Matcher, agrees_with_a_naive_matcher) {
    const std::uint64_t seed = test_seed(41);
    Random random(seed);
    for (int round = 0; round < 20; ++round) {
        Both both;
        const std::uint64_t tags = 1 + random.below(12);
        for (int step = 0; step < 5000; ++step) {
            const Rank source(static_cast<std::uint32_t>(random.below(kWorld)));
            const Tag tag(random.below(tags));
            const std::uint64_t choice = random.below(20);
            if (choice < 9) {
                ASSERT_NO_FATAL_FAILURE(both.post(random_pattern(random, source, tag))) << step;
            } else if (choice < 18) {
                ASSERT_NO_FATAL_FAILURE(both.arrive(source, tag)) << step;
            } else if (choice == 18 && !both.plain.posted.empty()) {
                auto at = both.plain.posted.begin();
                std::advance(at, random.below(both.plain.posted.size()));
                both.matcher.remove(**at);
                both.plain.posted.erase(at);
            } else if (!both.plain.arrived.empty()) {
                auto at = both.plain.arrived.begin();
                std::advance(at, random.below(both.plain.arrived.size()));
                both.matcher.remove(**at);
                both.plain.arrived.erase(at);
            }
        }
    }
}

TEST(Matcher, lists_pending_entries_in_order) {
    Both both;
    both.post({.source = Rank(1), .tag = Tag(2)});
    both.post({.source = {}, .tag = Tag(3)});
    both.arrive(Rank(2), Tag(9));
    both.arrive(Rank(0), Tag(8));
    EXPECT_THAT(both.matcher.all_posted(), ElementsAre(&both.receives[0], &both.receives[1]));
    EXPECT_THAT(both.matcher.all_arrived(), ElementsAre(&both.messages[0], &both.messages[1]));
}

TEST(Matcher, keeps_a_single_receive_and_its_place_before_later_ones) {
    Both both;
    both.post({.source = {}, .tag = Tag(2)});
    EXPECT_THAT(both.matcher.all_posted(), ElementsAre(&both.receives[0]));
    EXPECT_EQ(both.matcher.first_posted(Rank(1), Tag(3)), nullptr);
    both.post({.source = Rank(1), .tag = Tag(2)});
    both.arrive(Rank(1), Tag(2));
    EXPECT_THAT(both.matcher.all_posted(), ElementsAre(&both.receives[1]));
    both.arrive(Rank(1), Tag(2));
    EXPECT_THAT(both.matcher.all_posted(), ElementsAre());
    both.post({.source = Rank(0), .tag = {}});
    both.matcher.remove(both.receives[2]);
    EXPECT_EQ(both.matcher.first_posted(Rank(0), Tag(1)), nullptr);
}

TEST(Matcher, agrees_with_a_naive_matcher_when_few_receives_wait) {
    Random random(test_seed(42));
    for (int round = 0; round < 2000; ++round) {
        Both both;
        for (int step = 0; step < 20; ++step) {
            const Rank source(static_cast<std::uint32_t>(random.below(2)));
            const Tag tag(random.below(2));
            if (both.plain.posted.size() < 2 && random.chance(0.5)) {
                ASSERT_NO_FATAL_FAILURE(both.post(random_pattern(random, source, tag))) << step;
            } else if (!both.plain.posted.empty() && random.chance(0.2)) {
                both.matcher.remove(*both.plain.posted.front());
                both.plain.posted.pop_front();
            } else {
                ASSERT_NO_FATAL_FAILURE(both.arrive(source, tag)) << step;
            }
        }
    }
}

TEST(Matcher, finds_no_messages_from_a_rank_that_does_not_exist) {
    Both both;
    both.arrive(Rank(2), Tag(9));
    EXPECT_EQ(both.matcher.find({.source = Rank(kWorld), .tag = {}}), nullptr);
}

}  // namespace
}  // namespace nexar::engine
