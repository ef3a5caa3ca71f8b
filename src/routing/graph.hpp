#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "base/types.hpp"
#include "routing/topology.hpp"

namespace nexar::routing {

/// Number of a host in a view; members with the same one share memory. nullopt: unknown.
using Host = std::optional<std::uint32_t>;

/// A set of edges without direction, for example those that are known to be broken.
class EdgeSet {
public:
    EdgeSet() = default;
    /// `edges` may name an edge several times, in either direction, but none from a member to
    /// itself.
    explicit EdgeSet(std::span<const Edge> edges);

    std::size_t size() const noexcept { return directed_.size() / 2; }
    bool contains(Edge edge) const noexcept;
    /// The edges of one member, ascending by the other end, which is `b`.
    std::span<const Edge> of(Position member) const noexcept;

    friend bool operator==(const EdgeSet&, const EdgeSet&) = default;

private:
    std::vector<Edge> directed_;  // both directions of each edge, strictly ascending
};

/// Which members of one view are connected. Immutable, so any thread may read it.
///
/// The members are divided into groups, within which all pairs are connected: the members of one
/// host, or the whole view if the topology is full. Rows hold the other neighbours of each member.
/// So a full graph takes O(n) memory. Has at most wire::kMaxViewMembers members, and is connected.
class Graph {
public:
    /// `ranks` are those of the view, strictly ascending. `hosts` is empty or has one element for
    /// each member; members of the same host are adjacent under every topology.
    Graph(const Topology& topology, std::span<const Rank> ranks, std::span<const Host> hosts = {});

    Position size() const noexcept { return static_cast<Position>(ranks_.size()); }
    Rank rank(Position member) const { return ranks_[member]; }
    /// nullopt if no member has this rank.
    std::optional<Position> position(Rank rank) const noexcept;

    bool adjacent(Position a, Position b) const noexcept;
    std::size_t degree(Position member) const noexcept;
    std::uint64_t edges() const noexcept;
    /// Ascending.
    std::vector<Position> neighbours(Position member) const;
    /// True if every pair is adjacent because of its group.
    bool complete() const noexcept { return groups() <= 1; }

    std::size_t groups() const noexcept { return group_begins_.size() - 1; }
    std::uint32_t group_of(Position member) const { return group_of_[member]; }
    /// Ascending; never empty.
    std::span<const Position> group(std::uint32_t number) const noexcept;
    /// The neighbours outside of the member's group, ascending.
    std::span<const Position> row(Position member) const noexcept;

private:
    void divide(const Topology& topology, std::span<const Host> hosts);
    void fill_rows(const Topology& topology);

    std::vector<Rank> ranks_;
    std::vector<std::uint32_t> group_of_;
    std::vector<Position> group_members_;
    std::vector<std::size_t> group_begins_;  // in group_members_, and its end
    std::vector<Position> row_members_;
    std::vector<std::size_t> row_begins_;  // in row_members_, and its end
};

inline constexpr std::uint32_t kUnreachable = std::numeric_limits<std::uint32_t>::max();
inline constexpr Position kNoParent = std::numeric_limits<Position>::max();

/// The result of a breadth-first search, by member.
struct Reach {
    std::vector<std::uint32_t> hops;   // from the start, or kUnreachable
    std::vector<Position> parents;     // kNoParent: the start itself, or unreachable
    std::vector<Position> discovered;  // in the order of discovery, so parents precede children
};

/// Breadth-first search from `start` along the edges that are not broken, never through the member
/// `without`, which must not be `start`. Deterministic, also in the choice among possible parents.
///
/// Takes O(n log b + r + b) for b broken edges and r edges in rows: within a group, a search walks
/// over the members that it has not found yet, and only a broken edge makes it walk over one twice.
Reach search(const Graph& graph, Position start, const EdgeSet& broken = {},
             std::optional<Position> without = {});

/// A breadth-first spanning tree: every member is as near to the root as in the graph.
class Tree {
public:
    Tree(const Graph& graph, Position root, const EdgeSet& broken = {});

    Position root() const noexcept { return root_; }
    /// nullopt for the root, and for members that broken edges separate from it.
    std::optional<Position> parent(Position member) const;
    /// Ascending.
    std::span<const Position> children(Position member) const noexcept;
    /// Hops from the root; nullopt if unreachable.
    std::optional<std::uint32_t> depth(Position member) const;

private:
    Position root_;
    Reach reach_;
    std::vector<Position> children_;
    std::vector<std::size_t> begins_;  // in children_, and its end
};

/// Distances in hops between all pairs of different members; 0 if there are no pairs.
struct Distances {
    std::uint32_t diameter = 0;
    double average = 0;
};

/// Searches from 64 members at once. Takes O(diameter * n/64 * (n + edges in rows)).
Distances measure(const Graph& graph);

}  // namespace nexar::routing
