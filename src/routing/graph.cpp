#include "routing/graph.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "base/assert.hpp"
#include "wire/limits.hpp"

namespace nexar::routing {

namespace {

/// Turns counts into where each one's elements begin: element i is counted at i + 1.
void add_up(std::vector<std::size_t>& begins) {
    for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
}

std::span<const Position> stretch(const std::vector<Position>& all,
                                  const std::vector<std::size_t>& begins, std::size_t i) noexcept {
    return std::span(all).subspan(begins[i], begins[i + 1] - begins[i]);
}

/// The members that a search has not found yet, by group, so that it can walk over the unknown part
/// of a group instead of over all its pairs.
class Unseen {
public:
    explicit Unseen(const Graph& graph)
        : seen_(graph.size()), heads_(graph.groups()), next_(graph.size()) {
        for (std::uint32_t group = 0; group < heads_.size(); ++group) {
            Position* last = &heads_[group];
            for (const Position member : graph.group(group)) {
                *last = member;
                last = &next_[member];
            }
            *last = kEnd;
        }
    }

    bool has(Position member) const { return !seen_[member]; }
    void remove(Position member) { seen_[member] = true; }

    /// Removes the members of a group for which `found(member)` returns true, ascending.
    template <class Found>
    void take(std::uint32_t group, const Found& found) {
        Position* link = &heads_[group];
        while (*link != kEnd) {
            const Position member = *link;
            if (seen_[member] || found(member)) {
                seen_[member] = true;
                *link = next_[member];
            } else {
                link = &next_[member];
            }
        }
    }

private:
    static constexpr Position kEnd = std::numeric_limits<Position>::max();

    std::vector<bool> seen_;
    std::vector<Position> heads_;
    std::vector<Position> next_;
};

/// Breadth-first searches from up to 64 members at once: bit i of a word belongs to the i-th of
/// them (M. Then et al., "The More the Merrier: Efficient Multi-Source Graph Traversal", VLDB
/// 2014).
class Wave {
public:
    Wave(const Graph& graph, Position first, Position starts)
        : graph_(&graph),
          seen_(graph.size()),
          front_(graph.size()),
          next_(graph.size()),
          group_fronts_(graph.groups()) {
        for (Position i = 0; i < starts; ++i) {
            seen_[first + i] = front_[first + i] = std::uint64_t{1} << i;
        }
    }

    /// Advances all searches by one hop. Returns how many members they found, in all.
    std::uint64_t step() {
        std::ranges::fill(group_fronts_, 0);
        for (Position member = 0; member < front_.size(); ++member) {
            group_fronts_[graph_->group_of(member)] |= front_[member];
        }
        std::uint64_t found = 0;
        for (Position member = 0; member < front_.size(); ++member) {
            std::uint64_t arriving = group_fronts_[graph_->group_of(member)];
            for (const Position other : graph_->row(member)) arriving |= front_[other];
            next_[member] = arriving & ~seen_[member];
            seen_[member] |= arriving;
            found += static_cast<std::uint64_t>(std::popcount(next_[member]));
        }
        std::swap(front_, next_);
        return found;
    }

private:
    const Graph* graph_;
    std::vector<std::uint64_t> seen_;   // the searches that have found each member
    std::vector<std::uint64_t> front_;  // those that found it in the last step
    std::vector<std::uint64_t> next_;
    std::vector<std::uint64_t> group_fronts_;
};

}  // namespace

EdgeSet::EdgeSet(std::span<const Edge> edges) {
    directed_.reserve(2 * edges.size());
    for (const auto& [a, b] : edges) {
        NEXAR_ASSERT(a != b, "a member has no edge to itself");
        directed_.push_back({a, b});
        directed_.push_back({b, a});
    }
    std::ranges::sort(directed_);
    const auto repeated = std::ranges::unique(directed_);
    directed_.erase(repeated.begin(), repeated.end());
}

bool EdgeSet::contains(Edge edge) const noexcept {
    return std::ranges::binary_search(directed_, edge);
}

std::span<const Edge> EdgeSet::of(Position member) const noexcept {
    return std::ranges::equal_range(directed_, member, {}, &Edge::a);
}

Graph::Graph(const Topology& topology, std::span<const Rank> ranks, std::span<const Host> hosts)
    : ranks_(ranks.begin(), ranks.end()) {
    NEXAR_ASSERT(ranks.size() <= wire::kMaxViewMembers);
    NEXAR_ASSERT(hosts.empty() || hosts.size() == ranks.size());
    NEXAR_ASSERT(std::ranges::is_sorted(ranks, std::ranges::less_equal()), "strictly ascending");
    divide(topology, hosts);
    fill_rows(topology);
}

void Graph::divide(const Topology& topology, std::span<const Host> hosts) {
    const bool complete = topology.complete(size());
    std::unordered_map<std::uint32_t, std::uint32_t> known;
    std::uint32_t groups = complete && size() > 0 ? 1 : 0;
    group_of_.resize(size());
    for (Position member = 0; !complete && member < size(); ++member) {
        std::uint32_t group = groups;
        const Host host = hosts.empty() ? Host() : hosts[member];
        if (host) group = known.try_emplace(*host, groups).first->second;
        group_of_[member] = group;
        groups = std::max(groups, group + 1);
    }
    group_begins_.resize(groups + std::size_t{1});
    for (const std::uint32_t group : group_of_) ++group_begins_[group + std::size_t{1}];
    add_up(group_begins_);
    group_members_.resize(size());
    std::vector<std::size_t> ends = group_begins_;
    for (Position member = 0; member < size(); ++member) {
        group_members_[ends[group_of_[member]]++] = member;
    }
}

void Graph::fill_rows(const Topology& topology) {
    row_begins_.resize(size() + std::size_t{1});
    if (complete()) return;
    std::vector<Edge> between = topology.edges(ranks_);
    std::erase_if(between, [&](Edge edge) { return group_of_[edge.a] == group_of_[edge.b]; });
    const EdgeSet edges(between);
    row_members_.reserve(2 * edges.size());
    for (Position member = 0; member < size(); ++member) {
        for (const Edge& edge : edges.of(member)) row_members_.push_back(edge.b);
        row_begins_[member + std::size_t{1}] = row_members_.size();
    }
}

std::optional<Position> Graph::position(Rank rank) const noexcept {
    const auto found = std::ranges::lower_bound(ranks_, rank);
    if (found == ranks_.end() || *found != rank) return std::nullopt;
    return static_cast<Position>(found - ranks_.begin());
}

bool Graph::adjacent(Position a, Position b) const noexcept {
    if (a == b) return false;
    return group_of_[a] == group_of_[b] || std::ranges::binary_search(row(a), b);
}

std::size_t Graph::degree(Position member) const noexcept {
    return group(group_of(member)).size() - 1 + row(member).size();
}

std::uint64_t Graph::edges() const noexcept {
    std::uint64_t ends = 0;
    for (Position member = 0; member < size(); ++member) ends += degree(member);
    return ends / 2;
}

std::vector<Position> Graph::neighbours(Position member) const {
    std::vector<Position> all;
    all.reserve(degree(member) + 1);
    std::ranges::merge(row(member), group(group_of(member)), std::back_inserter(all));
    std::erase(all, member);
    return all;
}

std::span<const Position> Graph::group(std::uint32_t number) const noexcept {
    return stretch(group_members_, group_begins_, number);
}

std::span<const Position> Graph::row(Position member) const noexcept {
    return stretch(row_members_, row_begins_, member);
}

Reach search(const Graph& graph, Position start, const EdgeSet& broken,
             std::optional<Position> without) {
    NEXAR_ASSERT(start < graph.size() && without != start);
    Reach reach{.hops = std::vector<std::uint32_t>(graph.size(), kUnreachable),
                .parents = std::vector<Position>(graph.size(), kNoParent),
                .discovered = {start}};
    reach.hops[start] = 0;
    Unseen unseen(graph);
    unseen.remove(start);
    if (without) unseen.remove(*without);
    // The last member that was expanded and has a broken edge to this one.
    std::vector<Position> broken_from(graph.size(), kNoParent);
    for (std::size_t i = 0; i < reach.discovered.size(); ++i) {
        const Position member = reach.discovered[i];
        for (const Edge& edge : broken.of(member)) {
            NEXAR_ASSERT(edge.b < graph.size());
            broken_from[edge.b] = member;
        }
        const auto found = [&](Position other) {
            if (broken_from[other] == member) return false;
            reach.hops[other] = reach.hops[member] + 1;
            reach.parents[other] = member;
            reach.discovered.push_back(other);
            return true;
        };
        for (const Position other : graph.row(member)) {
            if (unseen.has(other) && found(other)) unseen.remove(other);
        }
        unseen.take(graph.group_of(member), found);
    }
    return reach;
}

Tree::Tree(const Graph& graph, Position root, const EdgeSet& broken)
    : root_(root),
      reach_(search(graph, root, broken)),
      children_(reach_.discovered.size() - 1),
      begins_(graph.size() + std::size_t{1}) {
    for (const Position parent : reach_.parents) {
        if (parent != kNoParent) ++begins_[parent + std::size_t{1}];
    }
    add_up(begins_);
    std::vector<std::size_t> ends = begins_;
    for (Position member = 0; member < graph.size(); ++member) {
        const Position parent = reach_.parents[member];
        if (parent != kNoParent) children_[ends[parent]++] = member;
    }
}

std::optional<Position> Tree::parent(Position member) const {
    const Position parent = reach_.parents[member];
    return parent == kNoParent ? std::nullopt : std::optional(parent);
}

std::span<const Position> Tree::children(Position member) const noexcept {
    return stretch(children_, begins_, member);
}

std::optional<std::uint32_t> Tree::depth(Position member) const {
    const std::uint32_t hops = reach_.hops[member];
    return hops == kUnreachable ? std::nullopt : std::optional(hops);
}

Distances measure(const Graph& graph) {
    constexpr Position kStarts = 64;
    Distances distances;
    std::uint64_t pairs = 0;
    std::uint64_t total = 0;
    for (Position first = 0; first < graph.size(); first += kStarts) {
        Wave wave(graph, first, std::min(kStarts, graph.size() - first));
        std::uint32_t hops = 1;
        while (const std::uint64_t found = wave.step()) {
            distances.diameter = std::max(distances.diameter, hops);
            pairs += found;
            total += found * hops++;
        }
    }
    const std::uint64_t n = graph.size();
    NEXAR_ASSERT(n == 0 || pairs == n * (n - 1), "every topology is connected");
    if (pairs > 0) distances.average = static_cast<double>(total) / static_cast<double>(pairs);
    return distances;
}

}  // namespace nexar::routing
