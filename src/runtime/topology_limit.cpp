#include "runtime/topology_limit.hpp"

#include <fmt/format.h>

#include "base/try.hpp"
#include "routing/relay.hpp"

namespace nexar::runtime {

Result<routing::Topology> topology_for(std::string_view text, std::size_t members) {
    NEXAR_TRY_VALUE(topology, routing::Topology::parse(text));
    const std::size_t most = most_members(topology);
    if (members <= most) return topology;
    return Error(Errc::invalid_argument,
                 fmt::format("topology={} connects at most {} members, because packets cross at "
                             "most {} links, and a cluster of {} was requested; use "
                             "topology=k_regular:4 or one with more neighbours",
                             topology.text(), most, routing::kDefaultHops, members));
}

std::size_t most_members(const routing::Topology& topology) noexcept {
    return topology.most_members(routing::kDefaultHops);
}

}  // namespace nexar::runtime
