// Buffers that ranks of one host read in place, through the public API.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nexar/nexar.hpp>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

using Shared = SharedBuffer<std::int64_t>;
static_assert(std::ranges::contiguous_range<Shared> && std::ranges::sized_range<Shared>);
static_assert(!std::is_copy_constructible_v<Shared> &&
              std::is_nothrow_move_constructible_v<Shared>);

/// The mappings of shared memory in this process.
std::size_t mappings() {
    std::ifstream maps("/proc/self/maps");
    std::size_t found = 0;
    for (std::string line; std::getline(maps, line);) {
        if (line.find("memfd:nexar") != std::string::npos) ++found;
    }
    return found;
}

std::size_t descriptors() {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

std::int64_t element(std::size_t rank, std::size_t i) {
    return static_cast<std::int64_t>((rank + 1) * 1'000'003 + i * 17);
}
std::int64_t sum_of(std::size_t world, std::size_t i) {
    std::int64_t all = 0;
    for (std::size_t rank = 0; rank < world; ++rank) all += element(rank, i);
    return all;
}
void fill(std::size_t rank, std::span<std::int64_t> values) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = element(rank, i);
}
void expect_sums(std::size_t world, std::span<const std::int64_t> values) {
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], sum_of(world, i)) << i;
}

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

constexpr std::size_t kLong = 60'001;

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

Error refusal(const Node& node, std::size_t count) {
    try {
        const auto made = node.allocate<std::int64_t>(count);
        ADD_FAILURE() << "the allocation succeeded";
    } catch (const Error& error) {
        return error;
    }
    return {Errc::closed, ""};
}

TEST(SharedBuffer, is_refused_with_a_reason_if_it_is_too_large) {
    const auto nodes = local_cluster(2);
    const Error overflow = refusal(nodes[0], std::numeric_limits<std::size_t>::max() / 2);
    EXPECT_EQ(overflow.code(), Errc::invalid_argument);
    EXPECT_THAT(overflow.what(), HasSubstr("exceed the address space"));
    const Error huge = refusal(nodes[0], std::size_t{1} << 56U);
    EXPECT_EQ(huge.code(), Errc::out_of_memory);
    EXPECT_THAT(huge.what(), HasSubstr("shared buffer"));
}

TEST(SharedBuffer, outlives_its_node) {
    Shared buffer;
    {
        const auto nodes = local_cluster(2);
        buffer = nodes[1].allocate<std::int64_t>(kLong);
        fill(1, buffer);
    }
    EXPECT_EQ(buffer[kLong - 1], element(1, kLong - 1));
    auto nodes = local_cluster(2);
    nodes[0].close();
    EXPECT_EQ(refusal(nodes[0], 5).code(), Errc::closed);
}

TEST(SharedBuffer, survives_a_forked_child_that_destroys_it) {
    const auto nodes = local_cluster(2);
    auto ranks = worlds_of(nodes);
    std::vector<Shared> buffers;
    for (std::size_t rank = 0; rank < 2; ++rank) {
        buffers.push_back(nodes[rank].allocate<std::int64_t>(kLong));
        fill(rank, buffers[rank]);
    }
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
        buffers.clear();
        int code = 1;
        try {
            const auto made = nodes[0].allocate<std::int64_t>(5);
        } catch (const Error& error) {
            code = error.code() == Errc::forked ? 0 : 2;
        }
        ::_exit(code);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    run(ranks, [&](Communicator& c, std::size_t r) { return c.all_reduce(buffers[r], sum); });
    expect_sums(2, buffers[0]);
    expect_sums(2, buffers[1]);
}

// The memory is overwritten as soon as the call has ended: a late rank fails or has the right sums.
TEST(SharedBuffer, released_at_a_deadline_is_never_taken_for_data) {
    const auto nodes = local_cluster(3);
    auto ranks = worlds_of(nodes);
    for (const std::size_t count : {kLong, 600'000UL}) {
        std::vector<Shared> buffers;
        for (std::size_t rank = 0; rank < 3; ++rank) {
            buffers.push_back(nodes[rank].allocate<std::int64_t>(count));
            fill(rank, buffers[rank]);
        }
        const CollectiveOptions options{.timeout = 50ms};
        {
            auto first = ranks[0].all_reduce(buffers[0], sum, options);
            auto second = ranks[1].all_reduce(buffers[1], sum, options);
            EXPECT_EQ(code_name(outcome(first)), "timed_out");
            EXPECT_EQ(code_name(outcome(second)), "timed_out");
        }
        std::ranges::fill(buffers[0], -1);
        buffers.erase(buffers.begin() + 1);
        const auto late = outcome(ranks[2].all_reduce(buffers[1], sum, options));
        EXPECT_EQ(code_name(late), "timed_out");
        expect_usable(ranks);
    }
}

TEST(SharedBuffer, of_a_cancelled_call_can_be_used_again_at_once) {
    const auto nodes = local_cluster(2);
    auto ranks = worlds_of(nodes);
    std::vector<Shared> buffers;
    for (const Node& node : nodes) buffers.push_back(node.allocate<std::int64_t>(kLong));
    for (int i = 0; i < 100; ++i) {
        fill(0, buffers[0]);
        fill(1, buffers[1]);
        auto one = ranks[0].all_reduce(buffers[0], sum);
        auto two = ranks[1].all_reduce(buffers[1], sum);
        if (i % 3 == 0) one.cancel();
        const auto first = outcome(one);
        if (!first) std::ranges::fill(buffers[0], -1);
        const auto second = outcome(two);
        if (first) expect_sums(2, buffers[0]);
        if (second) expect_sums(2, buffers[1]);
        EXPECT_TRUE(first || i % 3 == 0);
    }
    expect_usable(ranks);
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
