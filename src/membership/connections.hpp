#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/view.hpp"
#include "membership/membership.hpp"

namespace nexar::membership {

/// Which members of one view are connected to each other, in a sparse topology. A member is named
/// by its position in the view. Takes 4 bytes per neighbour and 8 per member: every member judges
/// every other one, so it needs the neighbours of all.
class Connections {
public:
    using Position = std::uint32_t;

    /// The topology is not sparse.
    Connections() = default;
    /// Asks for the neighbours of every member. Ignores nodes that are not in the view; asserts
    /// that the relation is symmetric, because a member that is watched by another one without
    /// sending it heartbeats would be suspected.
    Connections(const View& view, const NeighboursOf& neighbours_of);

    bool known() const noexcept { return !begins_.empty(); }
    /// Ascending.
    std::span<const Position> of(Position member) const noexcept;
    bool between(Position a, Position b) const noexcept;
    /// By member: whether a path from `from` leads to it through members that are not `down`.
    std::vector<bool> reach(Position from, const std::vector<bool>& down) const;

private:
    std::vector<Position> neighbours_{};  // of one member after the other
    std::vector<std::size_t> begins_{};   // in neighbours_, and its end
};

}  // namespace nexar::membership
