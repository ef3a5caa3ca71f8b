// Needs all processors: the time that a large cluster takes to form is limited by its handshakes.

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <vector>

#include "support/close_together.hpp"
#include "support/collective_data.hpp"
#include "support/sanitized.hpp"

namespace nexar::testing {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kNodes = 64;
constexpr int kDegree = 6;
constexpr double kBarSeconds = 4;
constexpr std::chrono::seconds kPatience{60};

double processor_seconds() {
    rusage used{};
    ::getrusage(RUSAGE_SELF, &used);
    const auto seconds = [](const timeval& time) {
        return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
    };
    return seconds(used.ru_utime) + seconds(used.ru_stime);
}

void expect_sums(const std::vector<Node>& nodes) {
    constexpr std::size_t kElements = (std::size_t{1} << 20U) / sizeof(std::int64_t);
    PerRank<std::int64_t> values =
        inputs<std::int64_t>(Values::distinct, 5, nodes.size(), kElements);
    const auto wanted = folded(ReduceOp::sum, values);
    std::vector<Communicator> worlds;
    std::vector<Work<>> works;
    worlds.reserve(nodes.size());
    works.reserve(nodes.size());
    for (const Node& node : nodes) worlds.push_back(node.world());
    for (std::size_t i = 0; i < worlds.size(); ++i) {
        works.push_back(worlds[i].all_reduce(values[i], sum));
    }
    const auto deadline = Clock::now() + kPatience;
    for (Work<>& work : works) {
        ASSERT_TRUE(work.wait_until(deadline));
        work.wait();
    }
    for (std::size_t i = 0; i < worlds.size(); ++i) EXPECT_TRUE(same(i, values[i], wanted));
}

TEST(SparseLocalCluster, of_64_nodes_forms_within_4_seconds) {
    const double cpu_before = processor_seconds();
    const auto begun = Clock::now();
    std::vector<Node> nodes = local_cluster(kNodes, {.topology = "k_regular:6", .link = "quic"});
    const double seconds = std::chrono::duration<double>(Clock::now() - begun).count();
    const double cpu = processor_seconds() - cpu_before;
    int handshakes = 0;
    for (const Node& node : nodes) {
        int connected = 0;
        for (const PeerLink& peer : node.peers()) {
            if (!peer.connected) continue;
            EXPECT_EQ(peer.hops, 1);
            ++connected;
            if (peer.dialed) ++handshakes;
        }
        EXPECT_LE(connected, kDegree) << "rank " << node.rank();
    }
    std::printf("formed in %.2f s, with %.2f s of processor time and %d handshakes\n", seconds, cpu,
                handshakes);
    EXPECT_GE(handshakes, kNodes);
    EXPECT_LE(handshakes, kNodes * kDegree / 2);
    EXPECT_LT(seconds, kSanitized ? 10 * kBarSeconds : kBarSeconds);
    const auto started = Clock::now();
    expect_sums(nodes);
    std::printf("an all-reduce of 1 MiB took %.2f s\n",
                std::chrono::duration<double>(Clock::now() - started).count());
    close_together(nodes);
}

}  // namespace
}  // namespace nexar::testing
