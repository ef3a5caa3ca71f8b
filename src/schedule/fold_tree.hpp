#pragma once

#include <bit>
#include <cstdint>

namespace nexar::schedule {

/// The canonical tree: all algorithms with the trait `canonical` fold the elements of the ranks
/// along it, so the bits of a floating-point result depend only on the world and not on the
/// algorithm, the chunks or the size.
///
/// For a world of n, let groups = bit_floor(n) and pairs = n - groups. The first 2 * pairs ranks
/// form neighbouring pairs; each pair, and each remaining rank, is a group. Then neighbouring
/// groups are joined, then neighbouring pairs of groups, and so on: a perfect binary tree over the
/// groups. Operands are always in the order of ranks.
///
///     n = 6:   ((0 1)(2 3)) (4 5)
///               \_/ \_/      |  |      pairs = 2: groups {0,1} {2,3} {4} {5}
///
/// Three kinds of algorithms follow this tree at no extra cost: recursive doubling with the nearest
/// partner first; halving the vector with the nearest partner first (the usual order, farthest
/// first, would join distant ranks and lose the order); and a binomial tree.
class FoldTree {
public:
    explicit constexpr FoldTree(std::uint32_t world) noexcept
        : groups_(std::bit_floor(world)), pairs_(world - groups_) {}

    constexpr std::uint32_t groups() const noexcept { return groups_; }
    constexpr std::uint32_t pairs() const noexcept { return pairs_; }

    /// Levels of the perfect tree over the groups.
    constexpr std::uint32_t rounds() const noexcept {
        return static_cast<std::uint32_t>(std::countr_zero(groups_));
    }

    constexpr std::uint32_t group_of(std::uint32_t rank) const noexcept {
        return rank < 2 * pairs_ ? rank / 2 : rank - pairs_;
    }

    /// The first rank of a group, which acts for it; leader(groups()) is the world.
    constexpr std::uint32_t leader(std::uint32_t group) const noexcept {
        return group < pairs_ ? 2 * group : group + pairs_;
    }

    constexpr bool is_pair(std::uint32_t group) const noexcept { return group < pairs_; }

    constexpr bool is_leader(std::uint32_t rank) const noexcept {
        return leader(group_of(rank)) == rank;
    }

private:
    std::uint32_t groups_;
    std::uint32_t pairs_;
};

}  // namespace nexar::schedule
