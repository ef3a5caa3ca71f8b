#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "routing/graph.hpp"

namespace nexar::routing {

/// A neighbour over which a destination can be reached.
struct Alternative {
    Position next{};
    /// From this member to the destination, including the hop to `next`. Counted on a path that
    /// does not return to this member.
    std::uint32_t hops{};

    friend bool operator==(const Alternative&, const Alternative&) noexcept = default;
};

/// The next hops of one member, `me`, to every destination in one view.
///
/// Computed for a destination when it is first asked for, and kept until the broken edges change;
/// keeps at most `most_cached` destinations. Not thread-safe.
///
/// Loops. Suppose that all members know the same broken edges. Then every first alternative is one
/// hop nearer to the destination, so following them arrives in distance() hops. An alternative
/// whose hops are at most distance() + 1 also leads to the destination without returning here: the
/// neighbour is at most as far away as this member, so its own first alternatives never pass here.
/// (A "loop-free alternate", RFC 5286.) With longer alternatives, or while members know different
/// broken edges, a relay can send a packet back; it should pass `from` to next_hop(), and packets
/// need a hop limit.
class Routes {
public:
    static constexpr std::size_t kMostAlternatives = 4;
    static constexpr std::size_t kMostCached = 4096;

    Routes(std::shared_ptr<const Graph> graph, Position me, std::size_t most_cached = kMostCached);

    Position me() const noexcept { return me_; }
    const Graph& graph() const noexcept { return *graph_; }
    const EdgeSet& broken() const noexcept { return broken_; }

    /// Replaces the set of broken edges. Edges that the graph does not have are ignored.
    void assume_broken(EdgeSet broken);

    /// True if `member` is a neighbour and the edge to it is not broken.
    bool usable(Position member) const noexcept;

    /// The nearest usable neighbours, the first choice first: the destination itself if it is one
    /// of them. Ties have an order that differs between pairs of members, so that load spreads over
    /// the relays. Empty if the destination is unreachable; it must not be me(). Valid until the
    /// next call that is not const.
    std::span<const Alternative> alternatives(Position destination);

    /// Hops to the destination; nullopt if it is unreachable.
    std::optional<std::uint32_t> distance(Position destination);

    /// The alternative number `choice % count` among those that are not `from`, the neighbour from
    /// which a relay received the packet; nullopt if there is none. The destination must not be
    /// me().
    std::optional<Position> next_hop(Position destination, std::uint32_t choice = 0,
                                     std::optional<Position> from = std::nullopt);

    /// Destinations that are kept, at most `most_cached`.
    std::size_t cached() const noexcept { return entries_.size(); }

private:
    struct Entry {
        Position destination{};
        std::uint32_t count = 0;
        std::array<Alternative, kMostAlternatives> alternatives{};
    };

    Entry compute(Position destination) const;
    Entry& free_entry();

    std::shared_ptr<const Graph> graph_;
    Position me_;
    std::size_t most_cached_;
    EdgeSet broken_;
    std::vector<Entry> entries_;
    std::unordered_map<Position, std::size_t> index_;  // in entries_, by destination
    std::uint64_t evictions_ = 0;
};

}  // namespace nexar::routing
