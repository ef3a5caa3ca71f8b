// A vector scattered over many buckets, and operations that are prepared once and started many
// times.

#include <gtest/gtest.h>

#include <nexar/nexar.hpp>
#include <span>
#include <vector>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

using Sizes = std::vector<std::size_t>;

/// The vector of one rank, cut into separate buckets.
template <class T>
struct Buckets {
    Buckets(const std::vector<T>& all, const Sizes& sizes) {
        std::size_t from = 0;
        for (const std::size_t size : sizes) {
            memory.push_back(part(all, from, size));
            from += size;
        }
        for (auto& bucket : memory) spans.emplace_back(bucket);
    }

    PerRank<T> memory;
    std::vector<std::span<T>> spans;
};

class BucketTest : public WorldTest {
protected:
    template <class T, class Op>
    void expect_like_one_vector(const Sizes& sizes, ReduceOp op, const Op& given) {
        std::size_t total = 0;
        for (const std::size_t size : sizes) total += size;
        const auto in = inputs<T>(values_for(op), 91, world(), total);
        std::vector<Buckets<T>> buckets;
        for (const auto& all : in) buckets.emplace_back(all, sizes);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_reduce(std::span<const std::span<T>>(buckets[rank].spans), given);
        });
        const auto want = folded(op, in);
        for (std::size_t rank = 0; rank < world(); ++rank) {
            EXPECT_TRUE(same(rank, joined(buckets[rank].memory), want));
        }
    }
};

INSTANTIATE_TEST_SUITE_P(In, BucketTest, every_world(), world_name);

TEST_P(BucketTest, all_reduce_of_buckets_equals_all_reduce_of_their_concatenation) {
    const Sizes odd{17, 0, 1, 4099, 333};
    expect_like_one_vector<float>(odd, ReduceOp::sum, sum);
    expect_like_one_vector<std::int64_t>(odd, ReduceOp::sum, sum);
    expect_like_one_vector<std::uint8_t>(odd, ReduceOp::max, max);
    expect_like_one_vector<std::int32_t>(odd, ReduceOp::average, average);
}

TEST_P(BucketTest, buckets_may_be_many_or_large_or_empty_or_absent) {
    expect_like_one_vector<float>(Sizes(300, 3), ReduceOp::sum, sum);
    expect_like_one_vector<float>({100'001, 1, 70'003}, ReduceOp::sum, sum);
    expect_like_one_vector<float>({0, 0, 5, 0}, ReduceOp::sum, sum);
    expect_like_one_vector<float>({0, 0}, ReduceOp::sum, sum);
    expect_like_one_vector<float>({}, ReduceOp::sum, sum);
}

TEST_P(BucketTest, buckets_may_be_folded_by_a_user_operator) {
    const auto op = [](std::uint64_t a, std::uint64_t b) { return a ^ b; };
    expect_like_one_vector<std::uint64_t>({5, 0, 2001, 77}, ReduceOp::bit_xor, op);
    expect_like_one_vector<std::uint64_t>({5, 0, 2001, 77}, ReduceOp::bit_xor,
                                          custom(op, Commutes::yes));
}

class PreparedTest : public WorldTest {};

INSTANTIATE_TEST_SUITE_P(In, PreparedTest, ::testing::Values(1, 2, 3, 5), world_name);

TEST_P(PreparedTest, three_operations_are_started_together) {
    auto summed = inputs<float>(Values::summable, 92, world(), 1000);
    auto spread = inputs<std::int64_t>(Values::distinct, 93, world(), 33);
    const auto in = inputs<std::int64_t>(Values::distinct, 94, world(), 5);
    auto gathered = room<std::int64_t>(world(), 5 * world());
    const auto want_sum = folded(ReduceOp::sum, summed);
    const auto want_spread = spread[0];
    std::vector<Work<>> works;
    for (std::size_t rank = 0; rank < world(); ++rank) {
        const std::vector<Prepared<void>> steps{
            ranks_[rank].prepare(
                [&, rank](auto& c) { return c.all_reduce(std::span(summed[rank]), sum); }),
            ranks_[rank].prepare(
                [&, rank](auto& c) { return c.broadcast(std::span(spread[rank]), 0); }),
            ranks_[rank].prepare([&, rank](auto& c) {
                return c.all_gather(std::span(in[rank]), std::span(gathered[rank]));
            })};
        for (Work<>& work : start_together(steps)) works.push_back(std::move(work));
    }
    expect_success(works);
    expect_everywhere(summed, want_sum);
    expect_everywhere(spread, want_spread);
    expect_everywhere(gathered, joined(in));
}

TEST_P(PreparedTest, messages_and_collectives_are_started_together) {
    const auto sent = inputs<float>(Values::distinct, 95, world(), 2000);
    auto got = room<float>(world(), 2000);
    auto summed = inputs<float>(Values::summable, 96, world(), 10);
    const auto want = folded(ReduceOp::sum, summed);
    std::vector<Work<>> works;
    std::vector<Work<Status>> received;
    const auto next = [this](std::size_t rank) { return (rank + 1) % world(); };
    for (std::size_t rank = 0; rank < world(); ++rank) {
        received.push_back(
            ranks_[next(rank)].recv(std::span(got[next(rank)]), static_cast<int>(rank), 7));
        const std::vector<Prepared<void>> steps{
            ranks_[rank].prepare_send(std::span(sent[rank]), static_cast<int>(next(rank)), 7),
            ranks_[rank].prepare(
                [&, rank](auto& c) { return c.all_reduce(std::span(summed[rank]), sum); })};
        for (Work<>& work : start_together(steps)) works.push_back(std::move(work));
    }
    expect_success(works);
    for (Work<Status>& work : received) EXPECT_TRUE(outcome(work).has_value());
    for (std::size_t rank = 0; rank < world(); ++rank) {
        EXPECT_TRUE(same(next(rank), got[next(rank)], sent[rank]));
    }
    expect_everywhere(summed, want);
}

TEST_P(PreparedTest, an_all_reduce_is_started_a_hundred_times_with_new_elements) {
    constexpr std::size_t kCount = 777;
    auto values = room<float>(world(), kCount);
    std::vector<Prepared<void>> steps;
    for (std::size_t rank = 0; rank < world(); ++rank) {
        steps.push_back(ranks_[rank].prepare(
            [&, rank](auto& c) { return c.all_reduce(std::span(values[rank]), sum); }));
    }
    for (std::uint64_t round = 0; round < 100; ++round) {
        const auto in = inputs<float>(Values::summable, 1000 + round, world(), kCount);
        for (std::size_t rank = 0; rank < world(); ++rank) {
            std::ranges::copy(in[rank], values[rank].begin());
        }
        run(ranks_, [&](Communicator&, std::size_t rank) { return steps[rank].start(); });
        expect_everywhere(values, folded(ReduceOp::sum, in));
        ASSERT_FALSE(HasFailure()) << "round " << round;
    }
}

}  // namespace
}  // namespace nexar::testing
