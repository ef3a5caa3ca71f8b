// Members of a sparse cluster that leave: what they sent through relays arrives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <nexar/nexar.hpp>
#include <thread>
#include <vector>

#include "support/close_together.hpp"
#include "support/sanitized.hpp"

namespace nexar {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using ::testing::Each;

constexpr std::size_t kNodes = 8;

std::vector<Node> ring() {
    return local_cluster(kNodes, {.topology = "k_regular:2", .link = "quic"});
}

TEST(TunnelDeparture, messages_through_relays_arrive_although_the_sender_closes_its_node) {
    for (const std::size_t sender : {0U, 5U}) {
        std::vector<Node> nodes = ring();
        const std::size_t receiver = (sender + kNodes / 2) % kNodes;
        const std::vector<int> sent(10'000, static_cast<int>(sender) + 1);
        nodes[sender].world().send(sent, static_cast<int>(receiver), 5).wait();
        nodes[sender].close();
        std::vector<int> received(sent.size());
        auto work = nodes[receiver].world().recv(received, static_cast<int>(sender), 5);
        ASSERT_TRUE(work.wait_for(10s)) << "from rank " << sender;
        work.wait();
        EXPECT_THAT(received, Each(sent.front()));
        close_together(nodes);
    }
}

/// All ranks exchange messages through relays; when all have theirs, they close their nodes.
/// Returns how long the slowest took to close its node.
std::chrono::duration<double> exchange_and_close() {
    std::vector<Node> nodes = ring();
    std::vector<std::vector<int>> received(kNodes, std::vector<int>(5000));
    std::vector<std::chrono::duration<double>> took(kNodes);
    std::barrier all_done(static_cast<std::ptrdiff_t>(kNodes));
    const auto run = [&](std::size_t i) {
        const Communicator world = nodes[i].world();
        const std::vector<int> sent(5000, static_cast<int>(i));
        auto arriving = world.recv(received[i], static_cast<int>((i + kNodes - 3) % kNodes), 1);
        world.send(sent, static_cast<int>((i + 3) % kNodes), 1).wait();
        arriving.wait();
        all_done.arrive_and_wait();
        const auto begin = steady_clock::now();
        nodes[i].close();
        took[i] = steady_clock::now() - begin;
    };
    {
        std::vector<std::jthread> threads;
        threads.reserve(kNodes);
        for (std::size_t i = 0; i < kNodes; ++i) threads.emplace_back(run, i);
    }
    for (std::size_t i = 0; i < kNodes; ++i) {
        EXPECT_THAT(received[i], Each(static_cast<int>((i + kNodes - 3) % kNodes)));
    }
    return std::ranges::max(took);
}

TEST(TunnelDeparture, nodes_that_close_together_lose_nothing_and_are_quick) {
    // Other programs may slow one attempt down. A link that waits for a relay takes 2 s each time.
    const std::chrono::duration<double> bar(testing::kSanitized ? 6 : 1.8);
    std::chrono::duration<double> fastest = 1h;
    for (int attempt = 0; attempt < 3 && fastest >= bar; ++attempt) {
        fastest = std::min(fastest, exchange_and_close());
    }
    std::printf("the slowest of %zu nodes took %.0f ms to close\n", kNodes, fastest.count() * 1e3);
    EXPECT_LT(fastest, bar);
}

}  // namespace
}  // namespace nexar
