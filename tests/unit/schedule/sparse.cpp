#include "unit/schedule/sparse.hpp"

#include <numeric>
#include <utility>

#include "base/mix.hpp"
#include "routing/graph.hpp"
#include "schedule/hypercube_walk.hpp"

namespace nexar::schedule::testing {

Hops hops_of(const routing::Topology& topology, std::uint32_t world) {
    std::vector<Rank> ranks;
    for (std::uint32_t rank = 0; rank < world; ++rank) ranks.emplace_back(rank);
    const routing::Graph graph(topology, ranks);
    std::vector<std::vector<std::uint32_t>> neighbours;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
        neighbours.push_back(graph.neighbours(rank));
    }
    std::vector<std::uint32_t> order;
    if (topology == routing::Topology::hypercube()) {
        const std::vector<std::uint32_t> slots = routing::hypercube_slots(ranks);
        std::vector<std::uint32_t> members(world);
        for (std::uint32_t rank = 0; rank < world; ++rank) members[slots[rank]] = rank;
        for (const std::uint32_t slot : hypercube_walk(world)) order.push_back(members[slot]);
    }
    return Hops(neighbours, std::move(order));
}

std::vector<routing::Topology> sparse_topologies() {
    return {routing::Topology::k_regular(2), routing::Topology::k_regular(4),
            routing::Topology::k_regular(8), routing::Topology::hypercube()};
}

std::vector<std::uint32_t> some_ranks(std::uint32_t world, std::uint32_t count, Random& random) {
    std::vector<std::uint32_t> ranks(world);
    std::iota(ranks.begin(), ranks.end(), 0U);
    for (std::uint32_t i = 0; i < count; ++i) {
        std::swap(ranks[i], ranks[i + random.below(world - i)]);
    }
    ranks.resize(count);
    return ranks;
}

NextHop shortest_ways(const Hops& hops) {
    std::vector<std::vector<std::uint32_t>> table(hops.world());  // by target, then by rank
    for (std::uint32_t to = 0; to < hops.world(); ++to) {
        const std::vector<std::uint32_t> left = hops.from(to);
        table[to].resize(hops.world(), to);
        for (std::uint32_t at = 0; at < hops.world(); ++at) {
            std::uint64_t least = 0;
            for (std::uint32_t next = 0; next < hops.world(); ++next) {
                if (!hops.adjacent(at, next) || left[next] + 1 != left[at]) continue;
                const std::uint64_t tie = mixed(mixed((std::uint64_t{at} << 32U) | to) ^ next) | 1U;
                if (least != 0 && tie > least) continue;
                least = tie;
                table[to][at] = next;
            }
        }
    }
    return [table = std::move(table)](std::uint32_t at, std::uint32_t to) { return table[to][at]; };
}

}  // namespace nexar::schedule::testing
