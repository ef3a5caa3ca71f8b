#include "link/sim/world.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace nexar::sim {

namespace {

using namespace std::chrono_literals;

/// Wants a turn at a time that the test sets, and records its turns.
class Sleeper final : public Actor {
public:
    void turn(TimePoint now) override {
        turns.push_back(now);
        wanted.reset();
        if (on_turn) on_turn();
    }
    std::optional<TimePoint> next_deadline() const override { return wanted; }

    std::optional<TimePoint> wanted{};
    std::vector<TimePoint> turns{};
    std::function<void()> on_turn{};
};

TEST(World, calls_run_at_their_time_and_in_the_order_in_which_they_were_made) {
    World world(1);
    const TimePoint begin = world.now();
    std::string order;
    world.after(2ms, [&] { order += 'c'; });
    world.after(1ms, [&] {
        order += 'a';
        EXPECT_EQ(world.now(), begin + 1ms);
        world.after(1ms, [&] { order += 'd'; });
    });
    world.after(1ms, [&] { order += 'b'; });
    world.run_for(1ms);
    EXPECT_EQ(order, "ab");
    world.run_for(10ms);
    EXPECT_EQ(order, "abcd");
    EXPECT_EQ(world.now(), begin + 11ms);
}

TEST(World, a_call_for_a_past_time_runs_at_once) {
    World world(1);
    const TimePoint begin = world.now();
    TimePoint called{};
    world.at(begin - 5s, [&] { called = world.now(); });
    world.run_for(1s);
    EXPECT_EQ(called, begin);
}

TEST(World, an_actor_gets_a_turn_when_its_deadline_is_due_and_not_before) {
    World world(1);
    const TimePoint begin = world.now();
    Sleeper sleeper;
    world.add(sleeper);
    world.run_for(1s);
    EXPECT_TRUE(sleeper.turns.empty());
    sleeper.wanted = world.now() + 7ms;
    world.run_for(1s);
    EXPECT_EQ(sleeper.turns, std::vector{begin + 1s + 7ms});
}

TEST(World, an_actor_that_was_touched_is_asked_again) {
    World world(1);
    const TimePoint begin = world.now();
    Sleeper sleeper;
    Sleeper other;
    world.add(sleeper);
    world.add(other);
    other.wanted = begin + 5ms;
    other.on_turn = [&] {
        sleeper.wanted = world.now() + 1ms;
        world.touch(sleeper);
    };
    world.run_for(1s);
    EXPECT_EQ(sleeper.turns, std::vector{begin + 6ms});
}

TEST(World, an_actor_that_is_always_asked_need_not_be_touched) {
    World world(1);
    const TimePoint begin = world.now();
    Sleeper silent;
    Sleeper other;
    world.always_ask(silent);
    world.add(silent);
    world.add(other);
    other.wanted = begin + 5ms;
    other.on_turn = [&] { silent.wanted = world.now() + 1ms; };
    world.run_for(1s);
    EXPECT_EQ(silent.turns, std::vector{begin + 6ms});
}

TEST(World, a_paused_actor_gets_no_turn_until_the_pause_ends) {
    World world(1);
    const TimePoint begin = world.now();
    Sleeper sleeper;
    world.add(sleeper);
    sleeper.wanted = begin + 1ms;
    world.pause(sleeper, begin + 50ms);
    world.run_for(1s);
    EXPECT_EQ(sleeper.turns, std::vector{begin + 50ms});
    sleeper.wanted = world.now();
    world.pause(sleeper, world.now() + 1h);
    world.run_for(1s);
    world.pause(sleeper, world.now() + 1s);
    world.run_for(2s);
    EXPECT_EQ(sleeper.turns.back(), begin + 3s);
}

TEST(World, turns_of_a_slow_actor_are_at_least_their_cost_apart) {
    World world(1);
    const TimePoint begin = world.now();
    Sleeper slow;
    world.add(slow);
    world.set_turn_cost(slow, 10ms);
    slow.wanted = begin;
    slow.on_turn = [&] { slow.wanted = begin; };
    world.run_for(35ms);
    EXPECT_EQ(slow.turns, (std::vector{begin, begin + 10ms, begin + 20ms, begin + 30ms}));
}

TEST(World, an_actor_may_be_destroyed_in_its_own_turn) {
    World world(1);
    auto sleeper = std::make_unique<Sleeper>();
    world.add(*sleeper);
    sleeper->wanted = world.now();
    sleeper->on_turn = [&] { sleeper.reset(); };
    world.run_for(1s);
    EXPECT_EQ(sleeper, nullptr);
}

TEST(World, run_until_returns_whether_the_condition_was_met_in_time) {
    World world(1);
    bool done = false;
    world.after(5ms, [&] { done = true; });
    EXPECT_FALSE(world.run_until([&] { return done; }, 4ms));
    EXPECT_TRUE(world.run_until([&] { return done; }, 4ms));
}

TEST(World, the_trace_depends_on_the_seed_on_what_happened_and_on_its_order) {
    const auto hash = [](std::uint64_t seed, std::uint64_t first, std::uint64_t second) {
        World world(seed);
        world.trace(first);
        world.trace(second);
        return world.trace_hash();
    };
    EXPECT_EQ(hash(1, 2, 3), hash(1, 2, 3));
    EXPECT_NE(hash(1, 2, 3), hash(1, 3, 2));
    EXPECT_NE(hash(1, 2, 3), hash(2, 2, 3));
}

TEST(WorldDeathTest, an_actor_that_stops_virtual_time_is_detected) {
    World world(1);
    Sleeper spinning;
    world.add(spinning);
    spinning.wanted = world.now();
    spinning.on_turn = [&] { spinning.wanted = world.now(); };
    EXPECT_DEATH(world.run_for(1s), "virtual time does not advance");
}

}  // namespace

}  // namespace nexar::sim
