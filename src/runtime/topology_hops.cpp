#include "runtime/topology_hops.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "runtime/collective_profile.hpp"
#include "schedule/hypercube_walk.hpp"

namespace nexar::runtime {

namespace {

schedule::Hops hops_among(const engine::Neighbourhood& neighbourhood,
                          std::span<const Member> members) {
    std::vector<std::uint32_t> ascending(members.size());
    std::iota(ascending.begin(), ascending.end(), 0U);
    std::ranges::sort(ascending, {}, [&](std::uint32_t one) { return members[one].rank; });
    View view;
    view.members.reserve(members.size());
    for (const std::uint32_t one : ascending) view.members.push_back(members[one]);
    // Members that this node has forgotten have no rank of their own.
    if (!std::ranges::is_sorted(view.members, std::ranges::less_equal(), &Member::rank)) return {};
    std::vector<std::uint32_t> positions(members.size());
    for (std::uint32_t i = 0; i < ascending.size(); ++i) positions[ascending[i]] = i;
    return hops_of(neighbourhood.topology(), neighbourhood.make_graph(view)).among(positions);
}

}  // namespace

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

void set_members(schedule::Profile& profile, std::span<const Member> members,
                 const engine::Neighbourhood* neighbourhood) {
    profile.links = links_of(members);
    profile.hops = neighbourhood != nullptr && neighbourhood->sparse()
                       ? hops_among(*neighbourhood, members)
                       : schedule::Hops();
}

}  // namespace nexar::runtime
