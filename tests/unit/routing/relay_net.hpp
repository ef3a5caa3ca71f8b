#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "routing/relay.hpp"

/// For the tests of Relay: several of them, and what travels between them.
namespace nexar::routing::relaying {

using Packet = std::vector<std::byte>;

inline constexpr TimePoint kStart{std::chrono::seconds(7)};
inline constexpr std::size_t kWide = 9000;
inline constexpr std::size_t kNarrow = 1144;  // a QUIC datagram frame on a path of 1200 bytes

inline Rank rank(std::size_t value) {
    return Rank(static_cast<std::uint32_t>(value));
}

inline Packet packet(std::uint32_t number, std::size_t size) {
    Packet bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(number * 31 + i * 7);
    return bytes;
}

inline Packet datagram(const wire::Envelope& envelope, const Packet& content) {
    const auto front = wire::encode_envelope(envelope, content.size());
    Packet bytes(front.begin(), front.end());
    bytes.insert(bytes.end(), content.begin(), content.end());
    return bytes;
}

/// A relay with a table, links and a view that the test sets.
struct Node final : NextHops, Outlets, Roster {
    explicit Node(std::size_t self, std::size_t members, const RelayOptions& options = {})
        : world(members), relay(rank(self), *this, *this, *this, options) {}

    std::optional<Rank> next_hop(Rank target, std::uint16_t choice,
                                 std::optional<Rank> not_to) override {
        const auto& ways = table[target];
        for (std::size_t i = 0; i < ways.size(); ++i) {
            const Rank way = ways[(i + choice) % ways.size()];
            if (stubborn || way != not_to) return way;
        }
        return std::nullopt;
    }
    std::size_t max_datagram(Rank neighbour) const override {
        return links.contains(neighbour) ? links.at(neighbour) : 0;
    }
    bool is_member(Rank of) const override { return of.value() < world; }

    std::size_t world;
    bool stubborn = false;  // ignores not_to
    std::map<Rank, std::vector<Rank>> table{};
    std::map<Rank, std::size_t> links{};
    Relay relay;
};

struct Flight {
    std::size_t from = 0;
    std::size_t to = 0;
    Packet bytes{};
};

/// Several relays and the datagrams between them.
struct Net {
    explicit Net(std::size_t members, const RelayOptions& options = {}) {
        for (std::size_t i = 0; i < members; ++i) {
            nodes.push_back(std::make_unique<Node>(i, members, options));
        }
    }

    void connect(std::size_t a, std::size_t b, std::size_t max_datagram) {
        nodes[a]->links[rank(b)] = max_datagram;
        nodes[b]->links[rank(a)] = max_datagram;
    }

    /// Shortest ways, all of them; the table of every node.
    void find_ways() {
        const std::size_t count = nodes.size();
        for (std::size_t target = 0; target < count; ++target) {
            std::vector<std::size_t> distance(count, count);
            distance[target] = 0;
            std::vector<std::size_t> queue{target};
            for (std::size_t i = 0; i < queue.size(); ++i) {
                for (const auto& [next, bytes] : nodes[queue[i]]->links) {
                    if (distance[next.value()] != count) continue;
                    distance[next.value()] = distance[queue[i]] + 1;
                    queue.push_back(next.value());
                }
            }
            for (std::size_t i = 0; i < count; ++i) {
                for (const auto& [next, bytes] : nodes[i]->links) {
                    if (distance[next.value()] + 1 == distance[i]) {
                        nodes[i]->table[rank(target)].push_back(next);
                    }
                }
            }
        }
    }

    Outcome send(std::size_t from, std::size_t to, const Packet& bytes, std::uint16_t choice = 0) {
        return nodes[from]->relay.send(now, rank(to), choice, bytes);
    }

    /// Puts everything that waits on its link.
    void collect() {
        for (std::size_t i = 0; i < nodes.size(); ++i) {
            Relay& relay = nodes[i]->relay;
            for (const Rank next : relay.neighbours_with_work()) {
                while (auto bytes = relay.poll(now, next)) {
                    EXPECT_LE(bytes->size(), nodes[i]->links.at(next));
                    flying.push_back({i, next.value(), std::move(*bytes)});
                }
            }
        }
    }

    void land(Flight flight) {
        nodes[flight.to]->relay.arrived(now, rank(flight.from), std::move(flight.bytes));
    }

    /// Returns how many datagrams crossed a link.
    std::size_t settle() {
        std::size_t crossed = 0;
        for (collect(); !flying.empty(); collect()) {
            crossed += flying.size();
            for (Flight& flight : std::exchange(flying, {})) land(std::move(flight));
        }
        return crossed;
    }

    std::uint64_t count(Outcome outcome) const {
        std::uint64_t sum = 0;
        for (const auto& node : nodes) sum += node->relay.count(outcome);
        return sum;
    }
    std::uint64_t violations() const {
        return count(Outcome::malformed) + count(Outcome::too_many_hops) +
               count(Outcome::forged_source);
    }

    TimePoint now = kStart;
    std::vector<std::unique_ptr<Node>> nodes{};
    std::vector<Flight> flying{};
};

}  // namespace nexar::routing::relaying
