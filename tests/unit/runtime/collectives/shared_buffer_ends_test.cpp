// Shared buffers that cannot be had, that outlive their node, and that a call releases early.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <nexar/nexar.hpp>
#include <vector>

#include "ranks.hpp"
#include "shared_values.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

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

TEST(SharedBuffer, is_released_when_a_rank_that_would_read_it_is_gone) {
    auto nodes = local_cluster(3);
    auto ranks = worlds_of(nodes);
    std::vector<Shared> buffers;
    for (const Node& node : nodes) buffers.push_back(node.allocate<std::int64_t>(kLong));
    run(ranks, [&](Communicator& c, std::size_t r) { return c.all_reduce(buffers[r], sum); });
    auto root = ranks[0].broadcast(buffers[0], 0);
    auto reader = ranks[1].broadcast(buffers[1], 0);
    nodes[2].close();
    EXPECT_FALSE(outcome(root));
    static_cast<void>(outcome(reader));  // it may have read everything before
    EXPECT_FALSE(outcome(ranks[0].all_reduce(buffers[0], sum)));
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

}  // namespace
}  // namespace nexar::testing
