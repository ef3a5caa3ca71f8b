// Operations that fail early because they were cancelled, timed out or lost a rank.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nexar/nexar.hpp>
#include <span>
#include <string>
#include <vector>

#include "ranks.hpp"
#include "support/sanitized.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::AnyOf;
using ::testing::HasSubstr;

constexpr std::size_t kEndsWorld = 4;
constexpr std::size_t kLate = 3;

class EarlyEnd : public ::testing::TestWithParam<std::size_t> {
protected:
    EarlyEnd() : ranks_(fresh_ranks(kEndsWorld)) {}

    std::size_t count() const { return GetParam(); }
    Work<> all_reduce(std::size_t rank, CollectiveOptions options = {}) {
        return ranks_[rank].all_reduce(std::span(in_[rank]), std::span(out_[rank]), sum, options);
    }
    /// All ranks except the late one call.
    std::vector<Work<>> start_without_late(CollectiveOptions options = {}) {
        std::vector<Work<>> works;
        for (std::size_t rank = 0; rank < kLate; ++rank) {
            works.push_back(all_reduce(rank, options));
        }
        return works;
    }

    /// The outcome at the late rank: `code`, or the right result if the others had sent everything
    /// before they gave up and the late rank called before it heard of that.
    void expect_late(const Result<void>& late, const std::string& code) {
        if (!late || count() > 100'000) {
            EXPECT_EQ(code_name(late), code);
        } else {
            EXPECT_TRUE(same(kLate, out_[kLate], folded(ReduceOp::sum, in_)));
        }
    }

    std::vector<Communicator> ranks_;
    PerRank<float> in_ = inputs<float>(Values::summable, 280, kEndsWorld, count());
    PerRank<float> out_ = room<float>(kEndsWorld, count());
};

INSTANTIATE_TEST_SUITE_P(With, EarlyEnd, ::testing::Values(1, 1000, 300'000),
                         [](const auto& count) {
                             return std::to_string(count.param) + "_elements";
                         });

TEST_P(EarlyEnd, cancelling_on_one_rank_cancels_on_all_ranks_and_for_a_late_caller) {
    for (std::size_t quitter = 0; quitter < kLate; ++quitter) {
        SCOPED_TRACE("rank " + std::to_string(quitter) + " cancels");
        auto works = start_without_late();
        works[quitter].cancel();
        const auto all = outcomes(works);
        for (std::size_t rank = 0; rank < kLate; ++rank) {
            ASSERT_EQ(code_name(all[rank]), "cancelled") << "rank " << rank;
            if (rank == quitter) continue;
            EXPECT_THAT(all[rank].error().what(), HasSubstr("rank " + std::to_string(quitter)));
        }
        const auto late = outcome(all_reduce(kLate));
        expect_late(late, "cancelled");
        if (!late) {
            EXPECT_THAT(late.error().what(), HasSubstr("rank " + std::to_string(quitter)));
        }
        expect_usable(ranks_);
    }
    expect_each(in_, inputs<float>(Values::summable, 280, kEndsWorld, count()));
}

TEST_P(EarlyEnd, a_timeout_fails_the_operation_on_all_ranks_and_for_a_late_caller) {
    const auto begin = std::chrono::steady_clock::now();
    auto works = start_without_late({.timeout = 200ms});
    const auto all = outcomes(works);
    EXPECT_GE(std::chrono::steady_clock::now() - begin, 200ms);
    for (std::size_t rank = 0; rank < kLate; ++rank) {
        EXPECT_EQ(code_name(all[rank]), "timed_out") << "rank " << rank;
    }
    expect_late(outcome(all_reduce(kLate)), "timed_out");
    expect_usable(ranks_);
}

TEST_P(EarlyEnd, a_timeout_of_one_rank_fails_the_operation_on_the_others) {
    std::vector<Work<>> works;
    works.push_back(all_reduce(0));
    works.push_back(all_reduce(1, {.timeout = 50ms}));
    works.push_back(all_reduce(2));
    for (const auto& result : outcomes(works)) EXPECT_EQ(code_name(result), "timed_out");
    expect_late(outcome(all_reduce(kLate)), "timed_out");
    expect_usable(ranks_);
}

TEST_P(EarlyEnd, later_operations_are_unaffected) {
    auto next_in = inputs<std::int64_t>(Values::distinct, 281, kEndsWorld, 700);
    const auto want = folded(ReduceOp::max, next_in);
    auto works = start_without_late();
    std::vector<Work<>> next;
    for (std::size_t rank = 0; rank < kLate; ++rank) {
        next.push_back(ranks_[rank].all_reduce(std::span(next_in[rank]), max));
    }
    works[1].cancel();
    for (const auto& result : outcomes(works)) EXPECT_EQ(code_name(result), "cancelled");
    expect_late(outcome(all_reduce(kLate)), "cancelled");
    next.push_back(ranks_[kLate].all_reduce(std::span(next_in[kLate]), max));
    expect_success(next);
    expect_everywhere(next_in, want);
}

TEST_P(EarlyEnd, cancelling_at_any_moment_gives_the_result_or_cancelled) {
    const auto want = folded(ReduceOp::sum, in_);
    for (std::size_t round = 0; round < 20; ++round) {
        auto works = start_without_late();
        works.push_back(all_reduce(kLate));
        const std::size_t quitter = round % kEndsWorld;
        works[quitter].wait_for(std::chrono::microseconds(round * 100));
        works[quitter].cancel();
        const auto all = outcomes(works);
        for (std::size_t rank = 0; rank < kEndsWorld; ++rank) {
            ASSERT_THAT(code_name(all[rank]), AnyOf("success", "cancelled")) << "rank " << rank;
            if (all[rank]) {
                EXPECT_TRUE(same(rank, out_[rank], want));
            }
        }
        expect_usable(ranks_);
    }
}

// The first collective of a communicator also sets up the memory that its ranks share.
TEST(Deadline, a_deadline_holds_in_the_first_collective) {
    auto ranks = fresh_ranks(3);
    const auto begin = std::chrono::steady_clock::now();
    auto prompt = ranks[0].barrier({.timeout = 200ms});
    auto same = ranks[1].barrier({.timeout = 200ms});
    EXPECT_EQ(code_name(outcome(prompt)), "timed_out");
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 1500ms);
    EXPECT_EQ(code_name(outcome(same)), "timed_out");
    EXPECT_EQ(code_name(outcome(ranks[2].barrier({.timeout = 200ms}))), "timed_out");
    expect_usable(ranks);
}

// A leaf of a reduction completes as soon as its elements are sent.
TEST(Deadline, a_deadline_does_not_fail_a_rank_that_had_finished) {
    auto ranks = fresh_ranks(3);
    expect_usable(ranks);
    const auto in = inputs<float>(Values::summable, 282, 3, 2);
    auto out = room<float>(1, 2).front();
    const CollectiveOptions soon{.timeout = kSanitized ? 2s : 400ms};
    auto root = ranks[0].reduce(std::span(in[0]), std::span(out), sum, 0, soon);
    auto leaf = ranks[1].reduce(std::span(in[1]), std::span<float>(), sum, 0, soon);
    EXPECT_EQ(code_name(outcome(root)), "timed_out");
    const auto leaf_end = outcome(leaf);
    EXPECT_EQ(code_name(leaf_end), "success") << leaf_end.error().what();
    auto late = ranks[2].reduce(std::span(in[2]), std::span<float>(), sum, 0, soon);
    EXPECT_THAT(code_name(outcome(late)), AnyOf("success", "timed_out"));
    expect_usable(ranks);
}

TEST(Deadline, a_deadline_in_the_far_future_has_no_effect) {
    auto ranks = fresh_ranks(3);
    for (int i = 0; i < 50; ++i) {
        run(ranks, [](Communicator& c, std::size_t) { return c.barrier({.timeout = 1h}); });
    }
    expect_usable(ranks);
}

TEST(Cancelled, a_cancelled_barrier_fails_on_all_ranks) {
    auto ranks = fresh_ranks(3);
    std::vector<Work<>> works;
    works.push_back(ranks[0].barrier());
    works.push_back(ranks[1].barrier());
    works[0].cancel();
    for (const auto& result : outcomes(works)) EXPECT_EQ(code_name(result), "cancelled");
    EXPECT_EQ(code_name(outcome(ranks[2].barrier())), "cancelled");
    expect_usable(ranks);
}

TEST(Cancelled, cancelling_a_completed_work_keeps_its_result) {
    auto ranks = fresh_ranks(2);
    auto works = start_all(ranks, [](Communicator& c, std::size_t) { return c.barrier(); });
    for (Work<>& work : works) ASSERT_TRUE(work.wait_for(kHang));
    works[0].cancel();
    expect_success(works);
}

class Closed : public ::testing::Test {
protected:
    static void expect_lost(const Result<void>& result) {
        EXPECT_THAT(code_name(result), AnyOf("link_closed", "closed"));
    }

    std::vector<Node> nodes_ = local_cluster(3);
    std::vector<Communicator> ranks_ = worlds_of(nodes_);
};

TEST_F(Closed, a_node_that_did_not_call_fails_the_pending_call_of_the_others) {
    for (const std::size_t count : {1U, 200'000U}) {
        auto values = inputs<float>(Values::summable, 283, 3, count);
        std::vector<Work<>> works;
        works.push_back(ranks_[0].all_reduce(std::span(values[0]), sum));
        works.push_back(ranks_[1].all_reduce(std::span(values[1]), sum));
        nodes_[2].close();
        for (const auto& result : outcomes(works)) expect_lost(result);
    }
}

TEST_F(Closed, closing_during_an_operation_gives_the_result_or_an_error) {
    auto values = inputs<float>(Values::summable, 284, 3, 4'000'000);
    const auto want = folded(ReduceOp::sum, values);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        return c.all_reduce(std::span(values[rank]), sum);
    });
    nodes_[1].close();
    const auto all = outcomes(works);
    for (std::size_t rank = 0; rank < 3; ++rank) {
        if (all[rank]) {
            EXPECT_TRUE(same(rank, values[rank], want));
        }
        if (!all[rank]) expect_lost(all[rank]);
    }
}

TEST_F(Closed, a_closed_node_fails_every_later_operation_that_needs_it) {
    nodes_[2].close();
    for (int i = 0; i < 3; ++i) {
        std::vector<Work<>> works;
        works.push_back(ranks_[0].barrier());
        works.push_back(ranks_[1].barrier());
        for (const auto& result : outcomes(works)) expect_lost(result);
    }
    const std::vector<int> sent{4};
    std::vector<int> got(1);
    auto send = ranks_[0].send(std::span(sent), 1, 1);
    EXPECT_TRUE(outcome(ranks_[1].recv(std::span(got), 0, 1)).has_value());
    EXPECT_TRUE(outcome(send).has_value());
    EXPECT_EQ(got, sent);
}

// In recursive doubling the third of three ranks talks only to the first, which does not call.
TEST(Gone, a_closed_member_is_noticed_even_without_messages_from_it) {
    auto nodes = local_cluster(3, {.collective_algorithm = "all_reduce=recursive_doubling"});
    auto ranks = worlds_of(nodes);
    expect_usable(ranks);
    float value = 1;
    auto begun = ranks[2].all_reduce(std::span(&value, 1), sum);
    nodes[1].close();
    const auto result = outcome(begun);
    ASSERT_EQ(code_name(result), "closed");
    EXPECT_THAT(result.error().what(), HasSubstr("rank 1 closed its node"));
    EXPECT_EQ(code_name(outcome(ranks[2].barrier())), "closed");
    EXPECT_EQ(code_name(outcome(ranks[0].barrier())), "closed");
}

TEST(Gone, a_member_that_dropped_its_communicator_is_not_waited_for) {
    auto ranks = fresh_ranks(3);
    expect_usable(ranks);
    ranks.erase(ranks.begin() + 1);
    float value = 1;
    for (Communicator& rank : ranks) {
        const auto result = outcome(rank.all_reduce(std::span(&value, 1), sum));
        ASSERT_EQ(code_name(result), "closed");
        EXPECT_THAT(result.error().what(), HasSubstr("rank 1 ended its communicator"));
    }
}

TEST_F(Closed, a_closed_node_does_not_affect_a_subgroup_without_it) {
    std::vector<Communicator> pair;
    const std::vector<int> members{0, 1};
    for (Communicator& rank : ranks_) {
        if (auto made = rank.subgroup(members)) pair.push_back(*made);
    }
    ASSERT_EQ(pair.size(), 2U);
    nodes_[2].close();
    for (int i = 0; i < 10; ++i) expect_usable(pair);
}

TEST_F(Closed, closing_a_node_fails_all_its_operations_in_flight) {
    auto values = inputs<float>(Values::summable, 285, 3, 1000);
    std::vector<Work<>> works;
    for (int i = 0; i < 10; ++i) works.push_back(ranks_[0].barrier());
    works.push_back(ranks_[0].all_reduce(std::span(values[0]), sum));
    nodes_[0].close();
    for (const auto& result : outcomes(works)) EXPECT_EQ(code_name(result), "closed");
}

TEST(TooMany, pending_operations_fail_the_collective_on_all_ranks_but_not_the_next) {
    auto nodes = local_cluster(3, {.max_pending = 4});
    auto ranks = worlds_of(nodes);
    std::vector<int> places(4);
    std::vector<Work<Status>> pending;
    for (int& place : places) pending.push_back(ranks[1].recv(std::span(&place, 1), 0, 77));
    auto values = inputs<float>(Values::summable, 285, 3, 10);
    auto works = start_all(ranks, [&](Communicator& c, std::size_t rank) {
        return c.all_reduce(std::span(values[rank]), sum);
    });
    for (const auto& one : outcomes(works)) EXPECT_EQ(code_name(one), "too_many_pending");
    for (auto& work : pending) work.cancel();
    for (auto& work : pending) EXPECT_FALSE(outcome(work));
    expect_usable(ranks);
}

}  // namespace
}  // namespace nexar::testing
