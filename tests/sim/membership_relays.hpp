#pragma once

#include <cstddef>
#include <vector>

#include "routing/topology.hpp"
#include "sim/membership_topology.hpp"
#include "sim/membership_world.hpp"

namespace nexar::testing {

inline void form_sparse(MembershipWorld& world, std::size_t members) {
    world.form(members, 1);
    world.run_for(2s);
}

inline MembershipWorld::Settings sparse_settings(const routing::Topology& topology) {
    return {.tunnels = {.neighbours = neighbours_under(topology)}};
}

/// The members of the first view, except for `gone`, that are not in the last view that any running
/// member knows.
inline std::vector<std::size_t> others_evicted(MembershipWorld& world, std::size_t members,
                                               const std::vector<std::size_t>& gone) {
    View last;
    for (std::size_t i = 0; i < members; ++i) {
        if (world.at(i).running && world.membership(i).view().epoch > last.epoch)
            last = world.membership(i).view();
    }
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < members; ++i) {
        if (std::ranges::find(gone, i) != gone.end()) continue;
        if (last.find(world.at(i).self.node) == nullptr) missing.push_back(i);
    }
    return missing;
}

/// The processes end, and all hosts that are connected to them notice it.
inline void kill_noticed(MembershipWorld& world, const std::vector<std::size_t>& processes) {
    for (const std::size_t one : processes) world.kill(one);
    for (std::size_t i = 0; i < world.size(); ++i) {
        for (const std::size_t one : processes) {
            if (world.at(i).running && !world.at(i).seed && world.near(i, one))
                world.hint(i, one, membership::Hint::gone);
        }
    }
}

/// In a hypercube of 16, most tunnels to member 15 pass through members 7 and 11, which end
/// together. The tunnels find another way only when those who probe member 15 lose patience.
/// Returns who else is evicted.
inline std::vector<std::size_t> evicted_behind_dead_relays() {
    MembershipWorld::Settings settings = sparse_settings(routing::Topology::hypercube());
    settings.tunnels.least_reroute = 300ms;
    settings.tunnels.same_relays = true;
    MembershipWorld world(1, settings);
    form_sparse(world, 16);
    kill_noticed(world, {7, 11});
    world.run_for(5s);
    return others_evicted(world, 16, {7, 11});
}

}  // namespace nexar::testing
