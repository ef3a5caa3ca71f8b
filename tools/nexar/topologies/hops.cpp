#include "topologies/hops.hpp"

#include <cstdint>
#include <utility>
#include <vector>

#include "schedule/hypercube_walk.hpp"

namespace nexar {

schedule::Hops hops_of(const routing::Topology& topology, const routing::Graph& graph) {
    if (graph.complete()) return {};
    std::vector<std::vector<std::uint32_t>> neighbours;
    std::vector<Rank> ranks;
    for (routing::Position member = 0; member < graph.size(); ++member) {
        neighbours.push_back(graph.neighbours(member));
        ranks.push_back(graph.rank(member));
    }
    // The edges of the other topologies contain the ring of all members in ascending order.
    std::vector<std::uint32_t> order;
    if (topology.kind() == routing::Topology::Kind::hypercube) {
        const std::vector<routing::Position> slots = routing::hypercube_slots(ranks);
        std::vector<std::uint32_t> members(slots.size());
        for (std::uint32_t member = 0; member < slots.size(); ++member) {
            members[slots[member]] = member;
        }
        for (const std::uint32_t slot : schedule::hypercube_walk(graph.size())) {
            order.push_back(members[slot]);
        }
    }
    return schedule::Hops(neighbours, std::move(order));
}

}  // namespace nexar
