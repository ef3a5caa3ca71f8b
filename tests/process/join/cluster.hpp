#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <nexar/nexar.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace nexar::testing {

inline constexpr std::chrono::seconds kPatience{30};

/// Options of a seed on loopback without a state directory.
inline SeedOptions seed_options(int world) {
    SeedOptions options;
    options.listen = "127.0.0.1:0";
    options.world = world;
    return options;
}

/// Joins in a thread; gives up after `patience`.
inline std::future<Node> join_soon(std::string join_string, JoinOptions options = {},
                                   std::chrono::milliseconds patience = kPatience) {
    options.join_string = std::move(join_string);
    options.settings.emplace_back("formation_timeout", std::to_string(patience.count()) + "ms");
    return std::async(std::launch::async, [options] { return join(options); });
}

/// The error of a failed join; fails the test if the join succeeded.
inline Error failure_of(std::future<Node>& joining) {
    try {
        joining.get();
    } catch (const Error& error) {
        return error;
    }
    ADD_FAILURE() << "a join that must fail succeeded";
    return {Errc::closed, "none"};
}

/// Every pair exchanges a number that encodes its sender and receiver.
inline void expect_connected(std::vector<Node>& nodes) {
    std::vector<Communicator> worlds;
    for (Node& node : nodes) worlds.push_back(node.world());
    std::vector<Work<>> sends;
    const int size = static_cast<int>(nodes.size());
    std::vector<std::vector<int>> sent(nodes.size(), std::vector<int>(nodes.size()));
    for (Communicator& world : worlds) {
        ASSERT_EQ(world.size(), size);
        for (int to = 0; to < size; ++to) {
            int& value = sent[static_cast<std::size_t>(world.rank())][static_cast<std::size_t>(to)];
            value = 1000 * world.rank() + to;
            sends.push_back(world.send(std::span(&value, 1), to, 5));
        }
    }
    for (Communicator& world : worlds) {
        for (int from = 0; from < size; ++from) {
            int value = -1;
            auto receive = world.recv(std::span(&value, 1), from, 5);
            ASSERT_TRUE(receive.wait_for(kPatience));
            receive.wait();
            EXPECT_EQ(value, 1000 * from + world.rank());
        }
    }
    for (Work<>& send : sends) send.wait();
}

inline std::vector<Node> all_of(std::vector<std::future<Node>>& joins) {
    std::vector<Node> nodes;
    for (auto& joining : joins) nodes.push_back(joining.get());
    return nodes;
}

/// Joins as many honest nodes as the seed expects.
inline std::vector<Node> join_all(Seed& seed, int world) {
    const std::string join_string = seed.create_token({.uses = world});
    std::vector<std::future<Node>> joins;
    for (int i = 0; i < world; ++i) joins.push_back(join_soon(join_string));
    return all_of(joins);
}

/// Yields until the condition holds; fails the test if that takes too long.
template <class Predicate>
void await(Predicate is_so, const char* what) {
    const auto deadline = std::chrono::steady_clock::now() + kPatience;
    while (!is_so()) {
        if (std::chrono::steady_clock::now() > deadline) throw std::runtime_error(what);
        std::this_thread::yield();
    }
}

inline void await_status(const Seed& seed, const std::string& words) {
    await([&] { return seed.status().find(words) != std::string::npos; }, words.c_str());
}

}  // namespace nexar::testing
