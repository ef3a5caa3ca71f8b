// Rank 0 sends numbered messages to a rank that is not its neighbour. When a part of them has
// arrived, the test kills the rank that relays them.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "process/p2p/member.hpp"
#include "process/sparse/scenarios.hpp"
#include "support/collective_data.hpp"

namespace nexar::testing {

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::uint64_t>;

constexpr int kSender = 0;
constexpr std::size_t kMessages = 256;
constexpr std::size_t kWords = (std::size_t{256} << 10U) / sizeof(std::uint64_t);
constexpr std::size_t kAfterKill = 64;       // at least these messages arrive after the kill
constexpr std::uint64_t kReady = kMessages;  // the tag after those of the messages

Words message(std::uint64_t seed, std::size_t number) {
    return elements<std::uint64_t>(Values::distinct, seed, number, kWords);
}

int receiver_of(const routing::Graph& graph, std::uint64_t seed) {
    Random random(seed);
    for (;;) {
        const auto other = static_cast<routing::Position>(1 + random.below(graph.size() - 1));
        if (!graph.adjacent(kSender, other)) return static_cast<int>(other);
    }
}

/// The first relay on the way to a rank; -1: none.
int relay_to(const Node& node, int rank) {
    const auto peers = node.peers();
    const auto found = std::ranges::find(peers, rank, &PeerLink::rank);
    return found == peers.end() ? -1 : found->via;
}

/// Sends all messages, and says each change of the relay.
void send_all(const Node& node, const Communicator& pair, int receiver, std::uint64_t seed,
              const Channel& parent) {
    std::vector<Words> memory;
    for (std::size_t i = 0; i < kMessages; ++i) memory.push_back(message(seed, i));
    auto ready = pair.recv<int>(1, kReady);
    finish(ready, soon());
    int relay = relay_to(node, receiver);
    parent.say(std::to_string(relay));
    std::vector<Work<>> sends;
    for (std::size_t i = 0; i < kMessages; ++i) sends.push_back(pair.send(memory[i], 1, i));
    for (Work<>& send : sends) {
        finish(send, soon());
        const int now = relay_to(node, receiver);
        if (now == relay) continue;
        relay = now;
        parent.say(std::to_string(relay));
    }
}

/// Receives all messages in the order of their sending, and asks for the kill after `until`.
/// Returns the longest pause between two of them in seconds.
double receive_all(const Communicator& pair, std::size_t until, std::uint64_t seed,
                   const Channel& parent) {
    PerRank<std::uint64_t> memory(kMessages, Words(kWords));
    std::vector<Work<Status>> receives;
    const auto receive_until = [&](std::size_t end) {
        for (std::size_t i = receives.size(); i < end; ++i) {
            receives.push_back(pair.recv(memory[i], 0, i));
        }
    };
    receive_until(kMessages - kAfterKill);
    auto ready = pair.send(1, 0, kReady);
    finish(ready, soon());
    double longest = 0;
    auto last = Clock::now();
    for (std::size_t i = 0; i < kMessages; ++i) {
        if (i == receives.size()) {
            // The test may be slower than the transfer, which must not end before the kill.
            await(parent, "killed", kWithin);
            last = Clock::now();
            receive_until(kMessages);
        }
        const Status status = finish(receives[i], soon());
        const auto now = Clock::now();
        if (i > until)
            longest = std::max(longest, std::chrono::duration<double>(now - last).count());
        last = now;
        if (status.bytes != kWords * sizeof(std::uint64_t)) throw std::runtime_error("a part");
        if (i == until) parent.say("kill");
    }
    for (std::size_t i = 0; i < kMessages; ++i) {
        if (memory[i] != message(seed, i)) throw std::runtime_error("a message is wrong");
    }
    if (pair.try_probe()) throw std::runtime_error("a message arrived twice");
    return longest;
}

}  // namespace

double pause_after_relay_is_killed(const SparseShape& shape, std::uint64_t seed) {
    const routing::Graph graph = graph_of(shape);
    const int receiver = receiver_of(graph, seed);
    Random random(seed + 1);
    const std::size_t until = kMessages / 8 + random.below(kMessages / 2);
    SparseWorld world(shape, [&](Node& node, const Channel& parent) {
        const auto pair = node.world().subgroup(std::array{kSender, receiver});
        if (!pair) return meet(parent);
        if (node.rank() == kSender) {
            send_all(node, *pair, receiver, seed, parent);
        } else {
            parent.say(std::to_string(receive_all(*pair, until, seed, parent)));
        }
        meet(parent);
    });
    const Channel& sender = world.rank(kSender).channel();
    const Channel& there = world.rank(static_cast<std::size_t>(receiver)).channel();
    await(there, "kill", kWithin);
    int relay = -1;
    while (const auto said = sender.heard()) relay = std::stoi(*said);
    if (relay < 0) throw std::runtime_error("the sender says that there is no relay");
    world.rank(static_cast<std::size_t>(relay)).kill();
    there.say("killed");
    const double pause = std::stod(hear(there, kWithin));
    await(there, "here", kWithin);
    int later = relay;
    for (std::string said; (said = hear(sender, kWithin)) != "here";) later = std::stoi(said);
    EXPECT_NE(later, relay) << "the sender still uses the relay that was killed";
    return pause;
}

}  // namespace nexar::testing
