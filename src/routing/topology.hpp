#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace nexar::routing {

/// Index of a member in its view, from 0 in ascending order of ranks. Valid in that view only.
using Position = std::uint32_t;

/// A pair of members that are connected. Edges have no direction.
struct Edge {
    Position a{};
    Position b{};

    friend auto operator<=>(const Edge&, const Edge&) noexcept = default;
};

/// The rule by which members of a view decide which pairs of them connect. All members compute the
/// same edges without talking, because the rule depends on nothing but the ranks in the view.
///
/// full: every pair.
///
/// k_regular:K: the union of K/2 Hamiltonian cycles (an H-graph: C. Law, K.-Y. Siu, "Distributed
/// construction of random expander networks", INFOCOM 2003). Cycle 0 has the order of ranks, so
/// that rings follow its edges; cycle i orders the members by a hash of (rank, i). A member has at
/// most K neighbours; a few have less, because two cycles share an edge. When a member comes or
/// goes, only its two neighbours in each cycle change an edge. Views of up to K + 1 members are
/// full.
///
/// hypercube: for any number n of members, which occupy slots 0 to n-1. Slots that differ in one
/// bit are neighbours, so a member has at most ceil(log2 n). The graph is connected, because
/// clearing the highest bit of a slot leads to a lower one. See hypercube_slots().
class Topology {
public:
    enum class Kind : std::uint8_t { full, k_regular, hypercube };

    static constexpr std::uint32_t kLeastDegree = 2;
    static constexpr std::uint32_t kMostDegree = 32;

    /// `full`.
    constexpr Topology() noexcept = default;

    /// Reads what text() writes. On failure, the Error (invalid_argument) quotes the text and lists
    /// what is allowed.
    static Result<Topology> parse(std::string_view text);

    /// `degree` must be even and in [kLeastDegree, kMostDegree].
    static Topology k_regular(std::uint32_t degree);
    static constexpr Topology hypercube() noexcept { return {Kind::hypercube, 0}; }

    constexpr Kind kind() const noexcept { return kind_; }
    /// K of k_regular:K, otherwise 0.
    constexpr std::uint32_t degree() const noexcept { return degree_; }
    std::string text() const;

    /// True if every pair of this many members is connected by the rule: always for `full`, in
    /// small views for `k_regular`.
    bool complete(std::size_t members) const noexcept;

    /// The most members of which all pairs are within this many hops of each other, as far as the
    /// rule alone can tell: a ring of n members is n/2 hops wide.
    std::size_t most_members(std::uint32_t hops) const noexcept;

    /// The edges among members with these ranks, which must be strictly ascending; an edge may
    /// occur several times, in either direction. Must not be called when complete(ranks.size()).
    std::vector<Edge> edges(std::span<const Rank> ranks) const;

    friend constexpr bool operator==(const Topology&, const Topology&) noexcept = default;

private:
    constexpr Topology(Kind kind, std::uint32_t degree) noexcept : kind_(kind), degree_(degree) {}

    Kind kind_ = Kind::full;
    std::uint32_t degree_ = 0;
};

/// The slot of each member in the hypercube: 0 to n-1, each once. `ranks` must be strictly
/// ascending.
///
/// Members should keep their slots, and with them their connections, when others come and go. So
/// the preferred slot of a member is its rank modulo the smallest power of two that is at least n.
/// Where that slot is at least n, or a lower rank has it, the member is displaced: after all
/// others, in ascending order of ranks, it takes the first free slot in a random order that its
/// rank determines.
///
/// It follows that a member with rank < n is never displaced. If the ranks are 0 to N-1 except for
/// f of them, at most f members are displaced, and the removal of the last of these f moved at most
/// f members. Without that condition, for example after many replacements, it is a matter of
/// chance: removing one of 1000 members with consecutive ranks from 5000 moves 4 members on
/// average. (If the displaced members took the free slots in ascending order, one removal could
/// move all of them.) When n falls to a power of two, the dimension changes, and up to n/2 members
/// move.
std::vector<Position> hypercube_slots(std::span<const Rank> ranks);

}  // namespace nexar::routing
