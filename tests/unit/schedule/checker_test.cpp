// The checker on schedules written by hand.

#include "schedule/check/checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedule/builder.hpp"
#include "schedule/check/expressions.hpp"

namespace nexar::schedule {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::uint64_t kCount = 10;
constexpr Slice kIn{Space::input, 0, kCount};
constexpr Slice kOut{Space::output, 0, kCount};
constexpr Algorithm kExchange{
    Collective::all_reduce, "exchange", {.keeps_order = true, .canonical = true}, nullptr};

/// The requests of two ranks.
std::vector<Request> two(Collective operation = Collective::all_reduce, bool in_place = false) {
    Request request;
    request.operation = operation;
    request.world = 2;
    request.in_place = in_place;
    request.chunks = Chunks::even(kCount, 2);
    std::vector<Request> both{request, request};
    both[1].rank = 1;
    return both;
}

/// Correct schedules: both ranks send their input and fold what they receive.
std::vector<Schedule> exchange() {
    std::vector<Schedule> both;
    for (const std::uint32_t rank : {0U, 1U}) {
        Builder builder;
        builder.send(1 - rank, kIn);
        builder.receive_reduce(1 - rank, kOut, kIn,
                               rank == 0 ? compute::Side::right : compute::Side::left);
        both.push_back(std::move(builder).build());
    }
    return both;
}

std::string complaint(const Algorithm& algorithm, const std::vector<Request>& requests,
                      const std::vector<Schedule>& schedules) {
    const Result<void> result = check(algorithm, requests, schedules);
    return result ? "" : result.error().cause();
}

std::string complaint(const std::vector<Schedule>& schedules) {
    return complaint(kExchange, two(), schedules);
}

void wait_for(Schedule& schedule, std::uint32_t step, const Dependency& dependency) {
    schedule.steps[step].first_dependency =
        static_cast<std::uint32_t>(schedule.dependencies.size());
    schedule.steps[step].dependency_count = 1;
    schedule.dependencies.push_back(dependency);
}

TEST(Checker, accepts_an_exchange) {
    EXPECT_EQ(complaint(exchange()), "");
}

TEST(Checker, names_algorithm_rank_and_step) {
    auto schedules = exchange();
    schedules[1].steps[0].from.offset = 1;
    const auto error = check(kExchange, two(), schedules).error();
    EXPECT_EQ(error.rank(), 1);
    EXPECT_THAT(error.cause(), AllOf(HasSubstr("all_reduce by exchange"), HasSubstr("rank 1"),
                                     HasSubstr("step 0"), HasSubstr("exceeds its buffer")));
}

TEST(Checker, names_the_cycle_of_a_deadlock_that_only_buffering_would_hide) {
    auto schedules = exchange();
    for (Schedule& schedule : schedules) wait_for(schedule, 1, {0});
    EXPECT_THAT(complaint(schedules), AllOf(HasSubstr("deadlock"), HasSubstr("of rank 0"),
                                            HasSubstr("of rank 1"), HasSubstr("which waits for")));
    wait_for(schedules[0], 1, {0});
    schedules[0].steps[1].dependency_count = 0;  // it is fine if only one rank waits
    EXPECT_EQ(complaint(schedules), "");
}

TEST(Checker, accepts_dependencies_on_later_steps) {
    auto schedules = exchange();
    wait_for(schedules[0], 0, {1});
    EXPECT_THAT(complaint(schedules), "");
    wait_for(schedules[1], 0, {1});
    EXPECT_THAT(complaint(schedules), HasSubstr("deadlock"));
}

TEST(Checker, requires_the_release_of_memory_that_is_overwritten) {
    const auto requests = two(Collective::broadcast);
    constexpr Algorithm kForth{Collective::broadcast, "forth_and_back", {}, nullptr};
    std::vector<Schedule> both(2);
    Builder root;
    root.send(1, kOut);
    root.receive(1, kOut);
    both[0] = std::move(root).build();
    Builder other;
    other.receive(0, kOut);
    other.send(0, kOut);
    both[1] = std::move(other).build();
    EXPECT_EQ(complaint(kForth, requests, both), "");
    both[0].dependencies[0].event = Milestone::finished;
    EXPECT_THAT(complaint(kForth, requests, both), HasSubstr("before the release of step 0"));
}

TEST(Checker, detects_pipelining_of_slices_that_are_divided_differently) {
    const auto requests = two(Collective::broadcast);
    constexpr Algorithm kShift{Collective::broadcast, "shift", {}, nullptr};
    std::vector<Schedule> both(2);
    Builder root(2);
    root.send(1, kOut);
    both[0] = std::move(root).build();
    Builder other(2);
    const Slice scratch = other.scratch(kCount + 1);
    other.receive(0, part(scratch, 1, kCount));
    other.copy(part(scratch, 1, kCount), kOut);
    both[1] = std::move(other).build();
    ASSERT_TRUE(both[1].dependencies[0].pipelined);
    EXPECT_EQ(complaint(kShift, requests, both), "");
    // Reading one element earlier makes a piece overlap the previous piece: waiting for one piece
    // is not enough.
    both[1].steps[1].from.offset = 0;
    EXPECT_THAT(complaint(kShift, requests, both), HasSubstr("before the end of step 0"));
}

TEST(Checker, requires_both_ends_of_a_message_to_match) {
    auto schedules = exchange();
    schedules[0].steps[0].message = 1;
    EXPECT_THAT(complaint(schedules), HasSubstr("has no other end"));
    schedules = exchange();
    --schedules[0].steps[0].from.count;
    EXPECT_THAT(complaint(schedules), HasSubstr("does not match"));
    schedules = exchange();
    schedules[0].steps[0].segment = 3;
    EXPECT_THAT(complaint(schedules), HasSubstr("does not match"));
    schedules = exchange();
    schedules[0].steps.push_back(schedules[0].steps[0]);
    EXPECT_THAT(complaint(schedules), HasSubstr("no other end, or more than one"));
}

TEST(Checker, rejects_malformed_steps) {
    auto schedules = exchange();
    schedules[0].steps[1].into.space = Space::input;
    EXPECT_THAT(complaint(schedules), HasSubstr("writes to the input"));
    schedules = exchange();
    schedules[0].steps[1].into.space = Space::scratch;
    EXPECT_THAT(complaint(schedules), HasSubstr("exceeds its buffer"));
    schedules = exchange();
    wait_for(schedules[0], 0, {7});
    EXPECT_THAT(complaint(schedules), HasSubstr("does not exist"));
    schedules = exchange();
    wait_for(schedules[0], 0, {1, Milestone::released});
    EXPECT_THAT(complaint(schedules), HasSubstr("not a send"));
    schedules = exchange();
    schedules[0].steps[1].local = {Space::output, 1, kCount};
    EXPECT_THAT(complaint(schedules), HasSubstr("exceeds its buffer"));
    schedules = exchange();
    schedules[0].steps[0].peer = 0;
    EXPECT_THAT(complaint(schedules), HasSubstr("itself or not in the world"));
}

TEST(Checker, detects_elements_that_no_step_writes) {
    auto schedules = exchange();
    schedules[0].steps[1].local.space = Space::scratch;
    schedules[0].scratch = kCount;
    EXPECT_THAT(complaint(schedules), HasSubstr("no step writes it"));
}

TEST(Checker, detects_folds_of_different_elements) {
    auto requests = two(Collective::all_reduce, true);
    auto schedules = exchange();
    for (Schedule& schedule : schedules) {
        schedule.steps[0].from = {Space::output, 0, 5};
        schedule.steps[1].into = schedule.steps[1].local = {Space::output, 5, 5};
    }
    EXPECT_THAT(complaint(kExchange, requests, schedules),
                HasSubstr("folds element 0 with element 5"));
}

TEST(Checker, requires_each_contribution_once_in_order_and_along_one_tree) {
    auto schedules = exchange();
    schedules[0].steps[1].side = compute::Side::left;
    EXPECT_THAT(complaint(schedules), HasSubstr("canonical"));
    Algorithm loose = kExchange;
    loose.traits.canonical = false;
    EXPECT_THAT(complaint(loose, two(), schedules), HasSubstr("fold of ranks 1 0"));
    loose.traits.keeps_order = false;
    EXPECT_EQ(complaint(loose, two(), schedules), "");
    schedules = exchange();
    Step again = schedules[0].steps[1];
    again.kind = Kind::reduce;
    again.from = kIn;
    again.local = kOut;
    schedules[0].steps.push_back(again);
    wait_for(schedules[0], 2, {1});
    EXPECT_THAT(complaint(loose, two(), schedules), HasSubstr("fold of ranks 0 0 1"));
}

/// Rank `rank` of three folds its own input with that of `first`, then with that of `second`.
Schedule chain_of_three(std::uint32_t rank, std::uint32_t first, std::uint32_t second) {
    Builder builder;
    builder.send(first, kIn);
    builder.send(second, kIn);
    builder.receive_reduce(first, kOut, kIn, compute::Side::left);
    builder.receive_reduce(second, kOut, kOut, compute::Side::left);
    EXPECT_NE(rank, first);
    return std::move(builder).build();
}

TEST(Checker, requires_the_same_tree_on_all_ranks_up_to_the_order_of_operands) {
    Request request = two()[0];
    request.world = 3;
    std::vector<Request> requests(3, request);
    for (std::uint32_t rank = 0; rank < 3; ++rank) requests[rank].rank = rank;
    Builder last;  // (0 1) 2
    const Slice scratch = last.scratch(kCount);
    last.send(0, kIn);
    last.send(1, kIn);
    last.receive(0, scratch);
    last.receive_reduce(1, scratch, scratch, compute::Side::right);
    last.reduce(scratch, kOut, kIn, compute::Side::left);
    std::vector<Schedule> schedules{chain_of_three(0, 1, 2), chain_of_three(1, 0, 2),
                                    std::move(last).build()};
    constexpr Algorithm kAll{Collective::all_reduce, "to_all", {}, nullptr};
    EXPECT_EQ(complaint(kAll, requests, schedules), "");
    schedules[1] = chain_of_three(1, 2, 0);  // 0 (2 1)
    EXPECT_THAT(complaint(kAll, requests, schedules),
                HasSubstr("rank 1: element 0 was folded along another tree than at rank 0"));
}

TEST(Checker, requires_every_rank_to_be_heard_in_a_barrier) {
    constexpr Algorithm kOneWay{Collective::barrier, "one_way", {}, nullptr};
    auto requests = two(Collective::barrier);
    std::vector<Schedule> both(2);
    Builder from;
    from.send_signal(1);
    both[0] = std::move(from).build();
    Builder to;
    to.receive_signal(0);
    both[1] = std::move(to).build();
    EXPECT_THAT(complaint(kOneWay, requests, both),
                HasSubstr("rank 0: the rank leaves the barrier without"));
}

TEST(Expressions, build_the_canonical_tree_with_pairs_first) {
    Expressions e;
    const auto leaf = [&](std::uint32_t rank) { return e.leaf(rank); };
    const auto left = e.fold(e.fold(leaf(0), leaf(1)), e.fold(leaf(2), leaf(3)));
    EXPECT_EQ(e.canonical(6), e.fold(left, e.fold(leaf(4), leaf(5))));
    EXPECT_EQ(e.canonical(3), e.fold(e.fold(leaf(0), leaf(1)), leaf(2)));
    EXPECT_EQ(e.canonical(1), leaf(0));
    EXPECT_EQ(e.leaves(e.canonical(7)), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(Expressions, have_the_same_shape_if_only_the_order_of_operands_differs) {
    Expressions e;
    const auto a = e.fold(e.fold(e.leaf(0), e.leaf(1)), e.leaf(2));
    const auto b = e.fold(e.leaf(2), e.fold(e.leaf(1), e.leaf(0)));
    const auto c = e.fold(e.leaf(0), e.fold(e.leaf(1), e.leaf(2)));
    EXPECT_NE(a, b);
    EXPECT_EQ(e.shape(a), e.shape(b));
    EXPECT_NE(e.shape(a), e.shape(c));
}

}  // namespace
}  // namespace nexar::schedule
