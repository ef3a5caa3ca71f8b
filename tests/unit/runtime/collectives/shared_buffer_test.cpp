// Buffers that ranks of one host read in place, through the public API.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <nexar/nexar.hpp>
#include <numeric>
#include <span>
#include <vector>

#include "ranks.hpp"
#include "shared_values.hpp"

namespace nexar::testing {
namespace {

static_assert(std::ranges::contiguous_range<Shared> && std::ranges::sized_range<Shared>);
static_assert(!std::is_copy_constructible_v<Shared> &&
              std::is_nothrow_move_constructible_v<Shared>);

class SharedBuffers : public ::testing::TestWithParam<int> {
protected:
    SharedBuffers() : nodes_(local_cluster(GetParam())), ranks_(worlds_of(nodes_)) {}

    std::size_t world() const { return nodes_.size(); }
    std::vector<Shared> allocate(std::size_t count) {
        std::vector<Shared> all;
        for (std::size_t rank = 0; rank < world(); ++rank) {
            all.push_back(nodes_[rank].allocate<std::int64_t>(count));
            fill(rank, all.back());
        }
        return all;
    }

    std::vector<Node> nodes_;
    std::vector<Communicator> ranks_;
};

TEST_P(SharedBuffers, give_right_sums_in_place_and_apart) {
    for (const std::size_t count : {1UL, 1000UL, kLong, 400'000UL}) {
        auto in = allocate(count);
        auto out = allocate(count);
        run(ranks_,
            [&](Communicator& c, std::size_t r) { return c.all_reduce(in[r], out[r], sum); });
        for (std::size_t rank = 0; rank < world(); ++rank) {
            EXPECT_TRUE(in[rank].shared());
            expect_sums(world(), out[rank]);
            for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(in[rank][i], element(rank, i));
        }
        run(ranks_, [&](Communicator& c, std::size_t r) { return c.all_reduce(in[r], sum); });
        for (const Shared& one : in) expect_sums(world(), one);
    }
}

TEST_P(SharedBuffers, mix_with_ordinary_memory_and_with_parts_of_buffers) {
    auto shared = allocate(kLong + 100);
    std::vector<std::vector<std::int64_t>> ordinary(world(), std::vector<std::int64_t>(kLong));
    for (std::size_t shift = 0; shift < world(); ++shift) {
        std::vector<std::span<std::int64_t>> parts;
        for (std::size_t rank = 0; rank < world(); ++rank) {
            const bool uses = (rank + shift) % 2 == 0;
            parts.push_back(uses ? std::span(shared[rank]).subspan(rank + 3, kLong)
                                 : std::span(ordinary[rank]));
            fill(rank, parts.back());
        }
        run(ranks_, [&](Communicator& c, std::size_t r) { return c.all_reduce(parts[r], sum); });
        for (const auto part : parts) expect_sums(world(), part);
    }
}

TEST_P(SharedBuffers, work_in_every_collective) {
    const std::size_t n = world();
    auto one = allocate(kLong);
    auto all = allocate(kLong * n);
    const int root = static_cast<int>(n) - 1;
    const auto last = static_cast<std::size_t>(root);

    run(ranks_, [&](Communicator& c, std::size_t r) { return c.all_gather(one[r], all[r]); });
    for (std::size_t rank = 0; rank < n; ++rank) {
        for (std::size_t i = 0; i < kLong * n; ++i) {
            ASSERT_EQ(all[rank][i], element(i / kLong, i % kLong));
        }
        fill(rank, all[rank]);
    }
    run(ranks_,
        [&](Communicator& c, std::size_t r) { return c.reduce_scatter(all[r], one[r], sum); });
    for (std::size_t rank = 0; rank < n; ++rank) {
        for (std::size_t i = 0; i < kLong; ++i) {
            ASSERT_EQ(one[rank][i], sum_of(n, rank * kLong + i));
        }
    }
    auto received = allocate(kLong * n);
    run(ranks_, [&](Communicator& c, std::size_t r) { return c.all_to_all(all[r], received[r]); });
    run(ranks_, [&](Communicator& c, std::size_t r) { return c.all_to_all(all[r], all[r]); });
    for (std::size_t rank = 0; rank < n; ++rank) {
        for (std::size_t i = 0; i < kLong * n; ++i) {
            const std::int64_t want = element(i / kLong, rank * kLong + i % kLong);
            ASSERT_EQ(received[rank][i], want);
            ASSERT_EQ(all[rank][i], want);
        }
        fill(rank, one[rank]);
    }
    auto scanned = allocate(kLong);
    run(ranks_, [&](Communicator& c, std::size_t r) { return c.scan(one[r], scanned[r], sum); });
    for (std::size_t rank = 0; rank < n; ++rank) {
        for (std::size_t i = 0; i < kLong; ++i) ASSERT_EQ(scanned[rank][i], sum_of(rank + 1, i));
    }
    run(ranks_,
        [&](Communicator& c, std::size_t r) { return c.reduce(one[r], scanned[r], sum, root); });
    expect_sums(n, scanned[last]);
    run(ranks_, [&](Communicator& c, std::size_t r) { return c.broadcast(scanned[r], root); });
    for (const Shared& each : scanned) expect_sums(n, each);
    run(ranks_, [&](Communicator& c, std::size_t r) { return c.gather(one[r], all[r], root); });
    for (std::size_t i = 0; i < kLong * n; ++i) {
        ASSERT_EQ(all[last][i], element(i / kLong, i % kLong));
    }
    run(ranks_,
        [&](Communicator& c, std::size_t r) { return c.scatter(all[r], scanned[r], root); });
    for (std::size_t rank = 0; rank < n; ++rank) {
        for (std::size_t i = 0; i < kLong; ++i) ASSERT_EQ(scanned[rank][i], element(rank, i));
    }
}

INSTANTIATE_TEST_SUITE_P(World, SharedBuffers, ::testing::Values(1, 2, 3, 5, 8), world_name);

TEST(SharedBuffer, is_mapped_by_the_other_ranks_when_a_collective_uses_it) {
    const auto nodes = local_cluster(3);
    auto ranks = worlds_of(nodes);
    expect_usable(ranks);
    // A call that exchanges counts first uses messages; that must not affect later calls.
    const std::vector<std::int64_t> own(5);
    std::vector<Work<Gathered<std::int64_t>>> gathered;
    for (Communicator& rank : ranks) gathered.push_back(rank.all_gather_v(own));
    for (auto& work : gathered) EXPECT_TRUE(outcome(work));
    gathered.clear();
    const std::size_t before = mappings();
    std::vector<Shared> buffers;
    for (const Node& node : nodes) buffers.push_back(node.allocate<std::int64_t>(kLong));
    EXPECT_EQ(mappings(), before + 3);
    for (int i = 0; i < 3; ++i) {
        run(ranks, [&](Communicator& c, std::size_t r) { return c.all_reduce(buffers[r], sum); });
        EXPECT_EQ(mappings(), before + 3 + 3 * 2);
    }
}

TEST(SharedBuffer, leaves_nothing_behind_when_it_is_released) {
    const auto nodes = local_cluster(2);
    auto ranks = worlds_of(nodes);
    expect_usable(ranks);
    const std::size_t mapped = mappings();
    const std::size_t open = descriptors();
    for (int i = 0; i < 300; ++i) {
        std::vector<Shared> buffers;
        for (std::size_t rank = 0; rank < 2; ++rank) {
            buffers.push_back(nodes[rank].allocate<std::int64_t>(kLong));
            ASSERT_EQ(std::accumulate(buffers[rank].begin(), buffers[rank].end(), std::int64_t{0}),
                      0);
            fill(rank, buffers[rank]);
        }
        run(ranks, [&](Communicator& c, std::size_t r) { return c.all_reduce(buffers[r], sum); });
        expect_sums(2, buffers[0]);
        ASSERT_LE(mappings(), mapped + 2 + 2 * 2);
    }
    std::vector<std::vector<std::int64_t>> ordinary(2, std::vector<std::int64_t>(kLong));
    run(ranks, [&](Communicator& c, std::size_t r) { return c.all_reduce(ordinary[r], sum); });
    EXPECT_EQ(mappings(), mapped);
    EXPECT_LE(descriptors(), open + 1);
}

TEST(SharedBuffer, is_copied_once_there_are_more_than_a_peer_maps) {
    const auto nodes = local_cluster(2);
    auto ranks = worlds_of(nodes);
    std::vector<std::vector<Shared>> buffers(2);
    for (int i = 0; i < 80; ++i) {
        for (std::size_t rank = 0; rank < 2; ++rank) {
            buffers[rank].push_back(nodes[rank].allocate<std::int64_t>(kLong));
            fill(rank, buffers[rank].back());
        }
        run(ranks,
            [&](Communicator& c, std::size_t r) { return c.all_reduce(buffers[r].back(), sum); });
        expect_sums(2, buffers[0].back());
        expect_sums(2, buffers[1].back());
    }
}

TEST(SharedBuffer, is_ordinary_memory_without_shared_memory_links) {
    NodeOptions options;
    options.link = "quic";
    const auto nodes = local_cluster(2, options);
    auto ranks = worlds_of(nodes);
    std::vector<Shared> buffers;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        buffers.push_back(nodes[rank].allocate<std::int64_t>(kLong));
        EXPECT_FALSE(buffers[rank].shared());
        EXPECT_EQ(std::ranges::count(buffers[rank], 0), std::int64_t{kLong});
        fill(rank, buffers[rank]);
    }
    run(ranks, [&](Communicator& c, std::size_t r) { return c.all_reduce(buffers[r], sum); });
    expect_sums(2, buffers[1]);
}

TEST(SharedBuffer, works_with_a_forced_algorithm_in_memory) {
    NodeOptions options;
    options.collective_algorithm = "all_reduce=slices";
    const auto nodes = local_cluster(2, options);
    auto ranks = worlds_of(nodes);
    std::vector<Shared> buffers;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        buffers.push_back(nodes[rank].allocate<std::int64_t>(kLong));
        fill(rank, buffers[rank]);
    }
    run(ranks, [&](Communicator& c, std::size_t r) { return c.all_reduce(buffers[r], sum); });
    expect_sums(2, buffers[0]);
}

TEST(SharedBuffer, can_be_empty_and_moved) {
    const auto nodes = local_cluster(1);
    Shared none = nodes[0].allocate<std::int64_t>(0);
    EXPECT_TRUE(none.empty());
    EXPECT_EQ(none.begin(), none.end());
    Shared some = nodes[0].allocate<std::int64_t>(10);
    some[3] = 7;
    const std::int64_t* const at = some.data();
    none = std::move(some);
    EXPECT_EQ(none.data(), at);
    EXPECT_EQ(none[3], 7);
    EXPECT_EQ(none.size(), 10U);
    EXPECT_TRUE(some.empty());  // NOLINT(bugprone-use-after-move): it is specified
    EXPECT_EQ(some.data(), nullptr);
}

TEST(SharedBuffer, serves_as_const_input_and_as_bucket) {
    const auto nodes = local_cluster(2);
    auto ranks = worlds_of(nodes);
    std::vector<std::vector<Shared>> buckets(2);
    std::vector<std::vector<double>> means(2, std::vector<double>(kLong));
    for (std::size_t rank = 0; rank < 2; ++rank) {
        for (const std::size_t count : {kLong, std::size_t{5}}) {
            buckets[rank].push_back(nodes[rank].allocate<std::int64_t>(count));
            fill(rank, buckets[rank].back());
        }
    }
    run(ranks, [&](Communicator& c, std::size_t r) { return c.all_reduce(buckets[r], sum); });
    expect_sums(2, buckets[0][0]);
    expect_sums(2, buckets[1][1]);

    std::vector<SharedBuffer<double>> values;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        values.push_back(nodes[rank].allocate<double>(kLong));
        for (std::size_t i = 0; i < kLong; ++i) {
            values[rank][i] = static_cast<double>(i + 2 * rank);
        }
    }
    run(ranks, [&](Communicator& c, std::size_t r) {
        return c.all_reduce(std::as_const(values[r]), means[r], average);
    });
    run(ranks, [&](Communicator& c, std::size_t r) { return c.all_reduce(values[r], average); });
    for (std::size_t i = 0; i < kLong; ++i) {
        ASSERT_EQ(means[0][i], static_cast<double>(i + 1));
        ASSERT_EQ(values[1][i], static_cast<double>(i + 1));
    }
}

}  // namespace
}  // namespace nexar::testing
