// Members of a sparse cluster that leave: what they sent through relays arrives.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <nexar/nexar.hpp>
#include <thread>
#include <vector>

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
    for (std::size_t sender = 0; sender < kNodes; ++sender) {
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
    }
}

TEST(TunnelDeparture, nodes_that_close_together_lose_nothing_and_are_quick) {
    std::vector<Node> nodes = ring();
    std::vector<std::vector<int>> received(kNodes, std::vector<int>(5000));
    std::vector<std::chrono::duration<double>> took(kNodes);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < kNodes; ++i) {
            threads.emplace_back([&, i] {
                const Communicator world = nodes[i].world();
                const std::vector<int> sent(5000, static_cast<int>(i));
                const auto from = static_cast<int>((i + kNodes - 3) % kNodes);
                auto arriving = world.recv(received[i], from, 1);
                world.send(sent, static_cast<int>((i + 3) % kNodes), 1).wait();
                arriving.wait();
                const auto begin = steady_clock::now();
                nodes[i].close();
                took[i] = steady_clock::now() - begin;
            });
        }
    }
    for (std::size_t i = 0; i < kNodes; ++i) {
        EXPECT_THAT(received[i], Each(static_cast<int>((i + kNodes - 3) % kNodes)));
    }
    const auto longest = std::ranges::max(took);
    std::printf("the slowest of %zu nodes took %.0f ms to close\n", kNodes, longest.count() * 1e3);
    EXPECT_LT(longest, 1s);
}

}  // namespace
}  // namespace nexar
