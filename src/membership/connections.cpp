#include "membership/connections.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::membership {

Connections::Connections(const View& view, const NeighboursOf& neighbours_of) {
    std::vector<std::pair<NodeId, Position>> positions;
    positions.reserve(view.members.size());
    for (const Member& member : view.members)
        positions.emplace_back(member.node, static_cast<Position>(positions.size()));
    std::ranges::sort(positions);
    begins_.reserve(view.members.size() + 1);
    begins_.push_back(0);
    for (const Member& member : view.members) {
        const auto begin = static_cast<std::ptrdiff_t>(neighbours_.size());
        for (const NodeId& node : neighbours_of(view, member.node)) {
            const auto at =
                std::ranges::lower_bound(positions, node, {}, &std::pair<NodeId, Position>::first);
            if (at == positions.end() || at->first != node || node == member.node) continue;
            neighbours_.push_back(at->second);
        }
        std::sort(neighbours_.begin() + begin, neighbours_.end());
        neighbours_.erase(std::unique(neighbours_.begin() + begin, neighbours_.end()),
                          neighbours_.end());
        begins_.push_back(neighbours_.size());
    }
    for (Position a = 0; a < view.members.size(); ++a) {
        for (const Position b : of(a)) NEXAR_ASSERT(between(b, a), "neighbours must be symmetric");
    }
}

std::span<const Connections::Position> Connections::of(Position member) const noexcept {
    return std::span(neighbours_).subspan(begins_[member], begins_[member + 1] - begins_[member]);
}

bool Connections::between(Position a, Position b) const noexcept {
    return std::ranges::binary_search(of(a), b);
}

std::vector<bool> Connections::reach(Position from, const std::vector<bool>& down) const {
    std::vector<bool> reached(begins_.size() - 1);
    std::vector<Position> found{from};
    reached[from] = true;
    for (std::size_t i = 0; i < found.size(); ++i) {
        for (const Position next : of(found[i])) {
            if (reached[next] || down[next]) continue;
            reached[next] = true;
            found.push_back(next);
        }
    }
    return reached;
}

}  // namespace nexar::membership
