#include "schedule/timing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cases.hpp"

namespace nexar::schedule::testing {
namespace {

using ::testing::HasSubstr;

// Round numbers, so that the times below can be checked by hand.
constexpr Rates kRates{.latency = 10,
                       .per_message = 1,
                       .per_byte = 0.5,
                       .both_byte = 0.5,
                       .reduce_byte = 0.25,
                       .copy_byte = 0.125,
                       .fill_bytes = 0};

Timing timed(Collective operation, std::string_view name, Case c) {
    c.algorithm = find_algorithm(operation, name);
    return run_on_clock(schedules(c, requests(c)), 1, kRates).value();
}

TEST(Clock, adds_up_latency_message_bytes_and_fold) {
    // 8 bytes each way at once: 10 + 1 + 4, then 2 for the fold.
    const Timing two =
        timed(Collective::all_reduce, "recursive_doubling", {.world = 2, .count = 8});
    EXPECT_DOUBLE_EQ(two.seconds, 17);
    EXPECT_EQ(two.most_bytes_sent, 8U);
    EXPECT_EQ(two.bytes_sent, 16U);
    EXPECT_EQ(two.most_messages, 1U);
    EXPECT_EQ(two.most_connections, 1U);
}

TEST(Clock, accounts_for_simultaneous_directions_and_for_the_fill_time) {
    Rates rates = kRates;
    rates.both_byte = 1;
    rates.fill_bytes = 6;
    // 1 + 6 * 0.5 until it arrives; then both are still sending: 1 + 8; and 2 for the fold.
    Case c{.algorithm = find_algorithm(Collective::all_reduce, "recursive_doubling"),
           .world = 2,
           .count = 8};
    rates.latency = 1;
    EXPECT_DOUBLE_EQ(run_on_clock(schedules(c, requests(c)), 1, rates)->seconds, 1 + 3 + 9 + 2);
    c.algorithm = find_algorithm(Collective::broadcast, "flat");
    EXPECT_DOUBLE_EQ(run_on_clock(schedules(c, requests(c)), 1, rates)->seconds, 1 + 3 + 5);
}

TEST(Clock, lets_a_rank_send_one_message_at_a_time) {
    // Three messages of 5 leave one after the other; the last arrives 10 later.
    const Timing flat = timed(Collective::broadcast, "flat", {.world = 4, .count = 8});
    EXPECT_DOUBLE_EQ(flat.seconds, 25);
    EXPECT_EQ(flat.most_bytes_sent, 24U);
    EXPECT_EQ(flat.most_connections, 3U);
}

TEST(Clock, lets_a_rank_receive_one_message_at_a_time) {
    const Timing flat = timed(Collective::gather, "flat", {.world = 4, .count = 32});
    EXPECT_DOUBLE_EQ(flat.seconds, 25);
    EXPECT_EQ(flat.most_bytes_sent, 8U);
}

TEST(Clock, overlaps_the_pieces_of_a_pipeline) {
    // Pieces of 4 bytes take 3 each, 4 of them; two hops of 10. Whole: 2 * (10 + 1 + 8).
    const Timing whole = timed(Collective::broadcast, "chain", {.world = 3, .count = 16});
    EXPECT_DOUBLE_EQ(whole.seconds, 38);
    const Timing pieces =
        timed(Collective::broadcast, "chain", {.world = 3, .count = 16, .segment = 4});
    EXPECT_DOUBLE_EQ(pieces.seconds, 2 * (10 + 3) + 3 * 3);
}

TEST(Clock, waits_for_the_release_of_memory_before_overwriting_it) {
    // A rank may overwrite what it sent one latency after the message arrived.
    Schedule sender;
    sender.steps = {{.kind = Kind::send, .peer = 1, .from = {Space::output, 0, 8}},
                    {.kind = Kind::receive_copy,
                     .peer = 1,
                     .dependency_count = 1,
                     .into = {Space::output, 0, 8}}};
    sender.dependencies = {{.step = 0, .event = Milestone::released}};
    Schedule other;
    other.steps = {{.kind = Kind::receive_copy, .peer = 0, .into = {Space::output, 0, 8}},
                   {.kind = Kind::send, .peer = 0, .from = {Space::output, 8, 8}}};
    const std::vector<Schedule> ranks{sender, other};
    EXPECT_DOUBLE_EQ(run_on_clock(ranks, 1, kRates).value().seconds, 10 + 5 + 10);
}

TEST(Clock, has_other_rates_within_a_host_and_shares_the_network_of_a_host) {
    // Ranks 0 and 1 on one host send 8 bytes each to ranks 2 and 3 on another one.
    const auto one = [](Kind kind, std::uint32_t peer) {
        Schedule schedule;
        const Slice slice{Space::output, 0, 8};
        schedule.steps = {{.kind = kind, .peer = peer, .from = slice, .into = slice}};
        return schedule;
    };
    const std::vector<Schedule> ranks{one(Kind::send, 2), one(Kind::send, 3),
                                      one(Kind::receive_copy, 0), one(Kind::receive_copy, 1)};
    Fabric fabric{.rates = kRates,
                  .host_rates = {.latency = 1, .per_message = 0, .per_byte = 0.25, .fill_bytes = 0},
                  .links = Links(std::vector<std::uint32_t>{0, 0, 1, 1})};
    EXPECT_DOUBLE_EQ(run_on_clock(ranks, 1, fabric).value().seconds, 10 + 1 + 4);
    // The network needs 8 for each message: the second one is through after 16 and the latency.
    fabric.rates.shared_byte = 1;
    EXPECT_DOUBLE_EQ(run_on_clock(ranks, 1, fabric).value().seconds, 16 + 10);
    fabric.links = Links(std::vector<std::uint32_t>{0, 1, 0, 1});
    EXPECT_DOUBLE_EQ(run_on_clock(ranks, 1, fabric).value().seconds, 1 + 2);
}

TEST(Clock, rejects_schedules_that_do_not_match_or_are_too_long) {
    Case c{.algorithm = find_algorithm(Collective::all_reduce, "ring"), .world = 4, .count = 8};
    auto ranks = schedules(c, requests(c));
    const auto long_one = run_on_clock(ranks, 1, kRates, 10);
    ASSERT_FALSE(long_one);
    EXPECT_EQ(long_one.error().code(), Errc::limit_exceeded);
    ranks[2].steps.clear();
    ranks[2].dependencies.clear();
    const auto odd = run_on_clock(ranks, 1, kRates);
    ASSERT_FALSE(odd);
    EXPECT_THAT(odd.error().what(), HasSubstr("has no matching receive"));
}

TEST(Clock, reports_a_deadlock) {
    Schedule one;
    one.steps = {{.first_dependency = 0, .dependency_count = 1},
                 {.first_dependency = 1, .dependency_count = 1}};
    one.dependencies = {{.step = 1}, {.step = 0}};
    const auto stuck = run_on_clock(std::span(&one, 1), 1, kRates);
    ASSERT_FALSE(stuck);
    EXPECT_THAT(stuck.error().what(), HasSubstr("deadlock: 2 pieces never finish"));
}

// 0 - 1 - 2 - 3, and messages between others pass through the ranks in between.
const Fabric line_fabric{.rates = kRates, .next_hop = [](std::uint32_t at, std::uint32_t to) {
                             return to > at ? at + 1 : at - 1;
                         }};

TEST(Clock, lets_relays_pass_on_the_first_bytes_at_once) {
    // 8 bytes from 0 to 1 to 2: two links, and two times 1 per message; then 4 for the bytes.
    Case c{.algorithm = find_algorithm(Collective::broadcast, "flat"), .world = 3, .count = 8};
    const auto built = schedules(c, requests(c));
    // The message for 1 leaves first, and the other one when its 5 are over.
    EXPECT_DOUBLE_EQ(run_on_clock(built, 1, kRates)->seconds, 5 + 10 + 5);
    const Timing timing = run_on_clock(built, 1, line_fabric).value();
    EXPECT_DOUBLE_EQ(timing.seconds, 5 + 10 + 1 + 10 + 5);
    EXPECT_EQ(timing.most_relayed, 8U);
    EXPECT_EQ(run_on_clock(built, 1, kRates)->most_relayed, 0U);
}

TEST(Clock, makes_messages_of_a_relay_wait_for_those_of_others) {
    // In the pairwise rounds of four ranks, 1 and 2 relay what 0 and 3 send beyond their neighbour.
    Case c{.algorithm = find_algorithm(Collective::all_to_all, "pairwise"), .world = 4, .count = 8};
    const auto built = schedules(c, requests(c));
    const Timing timing = run_on_clock(built, 1, line_fabric).value();
    EXPECT_GT(timing.seconds, run_on_clock(built, 1, kRates)->seconds);
    // Through 1: 0 to 2 and 3, and both back.
    EXPECT_EQ(timing.most_relayed, 32U);
}

}  // namespace
}  // namespace nexar::schedule::testing
