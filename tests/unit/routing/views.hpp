#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "routing/graph.hpp"

/// Views and topologies for the tests of routing.
namespace nexar::routing::testing {

/// `n` ranks without gaps from `first`.
inline std::vector<Rank> consecutive(std::uint32_t n, std::uint32_t first = 0) {
    std::vector<Rank> ranks;
    for (std::uint32_t i = 0; i < n; ++i) ranks.emplace_back(first + i);
    return ranks;
}

/// `n` ascending ranks, each 1 to `widest` above the one before.
inline std::vector<Rank> with_gaps(std::uint32_t n, Random& random, std::uint64_t widest = 9) {
    std::vector<Rank> ranks;
    std::uint32_t rank = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
        rank += 1 + static_cast<std::uint32_t>(random.below(widest));
        ranks.emplace_back(rank);
    }
    return ranks;
}

inline std::vector<Topology> sparse_topologies() {
    return {Topology::k_regular(2), Topology::k_regular(4), Topology::k_regular(8),
            Topology::hypercube()};
}

inline std::vector<Topology> all_topologies() {
    std::vector<Topology> all = sparse_topologies();
    all.emplace_back();
    return all;
}

/// The edges by rank, so that views can be compared.
using RankEdges = std::set<std::pair<Rank, Rank>>;

inline RankEdges rank_edges(const Graph& graph) {
    RankEdges edges;
    for (Position a = 0; a < graph.size(); ++a) {
        for (const Position b : graph.neighbours(a)) {
            if (a < b) edges.emplace(graph.rank(a), graph.rank(b));
        }
    }
    return edges;
}

/// A random edge of the graph, which must have one.
inline Edge random_edge(const Graph& graph, Random& random) {
    for (;;) {
        const auto a = static_cast<Position>(random.below(graph.size()));
        const auto neighbours = graph.neighbours(a);
        if (!neighbours.empty()) return {a, neighbours[random.below(neighbours.size())]};
    }
}

/// `count` random edges of the graph; some may be the same.
inline std::vector<Edge> random_edges(const Graph& graph, std::size_t count, Random& random) {
    std::vector<Edge> edges;
    for (std::size_t i = 0; i < count; ++i) edges.push_back(random_edge(graph, random));
    return edges;
}

/// Each member on one of `hosts` hosts, or on an unknown one.
inline std::vector<Host> random_hosts(std::uint32_t n, std::uint64_t hosts, Random& random) {
    std::vector<Host> all;
    for (std::uint32_t i = 0; i < n; ++i) {
        const std::uint64_t host = random.below(hosts + 1);
        all.push_back(host == hosts ? Host() : Host(static_cast<std::uint32_t>(host) * 7));
    }
    return all;
}

/// A matrix of usable edges, for slow and simple searches.
class Matrix {
public:
    explicit Matrix(const Graph& graph, std::span<const Edge> broken = {}) : n_(graph.size()) {
        for (Position a = 0; a < n_; ++a) {
            for (Position b = 0; b < n_; ++b) usable_.push_back(graph.adjacent(a, b));
        }
        for (const Edge& edge : broken) cut(edge);
    }

    void cut(Edge edge) { usable_[edge.a * n_ + edge.b] = usable_[edge.b * n_ + edge.a] = false; }
    void remove(Position member) {
        for (Position other = 0; other < n_; ++other) cut({member, other});
    }
    bool usable(Position a, Position b) const { return usable_[a * n_ + b]; }

    /// Relaxes every edge until nothing changes (Bellman and Ford).
    std::vector<std::uint32_t> hops(Position start) const {
        std::vector<std::uint32_t> hops(n_, kUnreachable);
        hops[start] = 0;
        for (bool changed = true; changed;) {
            changed = false;
            for (Position a = 0; a < n_; ++a) {
                for (Position b = 0; hops[a] != kUnreachable && b < n_; ++b) {
                    if (!usable(a, b) || hops[b] <= hops[a] + 1) continue;
                    hops[b] = hops[a] + 1;
                    changed = true;
                }
            }
        }
        return hops;
    }

private:
    std::size_t n_;
    std::vector<bool> usable_;
};

}  // namespace nexar::routing::testing
