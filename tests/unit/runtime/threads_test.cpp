#include <gtest/gtest.h>

#include <array>
#include <nexar/nexar.hpp>
#include <thread>
#include <vector>

namespace nexar {
namespace {

constexpr int kMessages = 300;

// Every thread waits for its own works; the thread that drives must wake the others.
TEST(Threads, eight_threads_wait_for_different_works_of_one_node) {
    auto nodes = local_cluster(2);
    std::vector<std::jthread> threads;
    for (std::uint64_t tag = 0; tag < 8; ++tag) {
        threads.emplace_back([&nodes, tag] {
            Communicator world = nodes[0].world();
            std::uint64_t value = 0;
            for (std::uint64_t i = 0; i < kMessages; ++i) {
                world.recv(std::span(&value, 1), 1, tag).wait();
                ASSERT_EQ(value, tag * 1'000'000 + i);
                world.send(std::span(&value, 1), 1, tag).wait();
            }
        });
    }
    Communicator other = nodes[1].world();
    for (std::uint64_t i = 0; i < kMessages; ++i) {
        for (std::uint64_t tag = 0; tag < 8; ++tag) {
            const std::uint64_t value = tag * 1'000'000 + i;
            other.send(std::span(&value, 1), 0, tag).wait();
        }
        for (std::uint64_t tag = 0; tag < 8; ++tag) {
            std::uint64_t value = 0;
            other.recv(std::span(&value, 1), 0, tag).wait();
            ASSERT_EQ(value, tag * 1'000'000 + i);
        }
    }
}

TEST(Threads, threads_with_their_own_communicators_do_not_mix_up_messages) {
    auto nodes = local_cluster(2);
    std::vector<std::pair<Communicator, Communicator>> pairs;
    for (int i = 0; i < 4; ++i) {
        pairs.emplace_back(nodes[0].world().duplicate(), nodes[1].world().duplicate());
    }
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        threads.emplace_back([&pairs, i] {
            std::vector<std::uint32_t> values(3000 * (i + 1));
            for (std::uint32_t round = 0; round < kMessages; ++round) {
                values.assign(values.size(), static_cast<std::uint32_t>(i) * 1000 + round);
                pairs[i].first.send(std::span(values), 1, 5).wait();
            }
        });
        threads.emplace_back([&pairs, i] {
            std::vector<std::uint32_t> values(3000 * (i + 1));
            for (std::uint32_t round = 0; round < kMessages; ++round) {
                pairs[i].second.recv(std::span(values), 0, 5).wait();
                for (const std::uint32_t value : values) {
                    ASSERT_EQ(value, static_cast<std::uint32_t>(i) * 1000 + round);
                }
            }
        });
    }
}

TEST(Threads, no_wait_hangs_when_nodes_close) {
    for (int round = 0; round < 10; ++round) {
        auto nodes = local_cluster(3);
        std::vector<std::jthread> threads;
        std::atomic<int> waiting = 0;
        for (std::size_t i = 0; i < 3; ++i) {
            threads.emplace_back([&nodes, &waiting, i] {
                std::array<int, 1> got{};
                auto work = nodes[i].world().recv(std::span(got), static_cast<int>((i + 1) % 3));
                ++waiting;
                EXPECT_FALSE(work.result().has_value());
            });
        }
        while (waiting != 3) std::this_thread::yield();
        for (Node& node : nodes) node.close();
    }
}

}  // namespace
}  // namespace nexar
