// How the members of a view connect: all pairs, on demand, or as the setting topology says.

#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "runtime/collective_profile.hpp"
#include "runtime/node_body.hpp"
#include "runtime/topology_limit.hpp"

namespace nexar::detail {

namespace {

/// Largest cluster in which all members connect when it forms, for mesh=auto.
constexpr std::size_t kMostEager = 64;

/// Members that may share memory.
std::vector<routing::Host> hosts_of(const View& view) {
    const schedule::Links links = runtime::links_of(view.members);
    std::vector<routing::Host> hosts;
    hosts.reserve(view.members.size());
    for (std::uint32_t i = 0; i < view.members.size(); ++i) hosts.emplace_back(links.host(i));
    return hosts;
}

bool wants_eager(std::string_view mesh, std::size_t members) noexcept {
    return mesh == "eager" || (mesh == "auto" && members <= kMostEager);
}

}  // namespace

/// Decides, when the first view comes, how members connect: all pairs at once, on demand, or as the
/// setting topology says. Where all pairs connect, tunnels serve those whose direct path is cut.
Result<void> NodeBody::make_overlay(std::size_t members) {
    std::string_view wanted = config_ ? config_->text("topology") : "full";
    if (!options_.topology.empty()) wanted = options_.topology;
    NEXAR_TRY_VALUE(topology, runtime::topology_for(wanted, members));
    const bool full = topology.kind() == routing::Topology::Kind::full;
    lazy_ = full && !wants_eager(config_ ? config_->choice("mesh") : "eager", members);
    mesh_.set_eager(!lazy_);
    // Members of a lazy mesh do not know who is connected to whom, so nobody can relay.
    if (lazy_ || (full && !signer_)) return {};
    if (!signer_) return Error(Errc::unsupported, "a node without a key of its own cannot relay");
    neighbourhood_.emplace(topology);
    if (!full && allows_further_links()) neighbourhood_.emplace(topology, hosts_of);
    engine::OverlayOptions options;
    options.relay.hash_seed = engine_.options().hash_seed;
    overlay_ = std::make_unique<engine::Overlay>(
        engine::Overlay::Surroundings{engine_, first(), *signer_, *neighbourhood_}, options);
    mesh_.set_tunnels(true);
    return {};
}

/// Lets the mesh connect to the members of a view.
void NodeBody::connect(TimePoint now, const View& view) {
    if (overlay_) {
        overlay_->adopt(now, view, identity_);
        mesh_.set_neighbours(overlay_->neighbours());
    }
    mesh_.adopt(now, view, identity_.node);
}

/// Between this node's mesh and those of its peers: only the end that dialed can move a connection.
void NodeBody::carry_path_requests(TimePoint now) {
    while (const auto request = mesh_.poll_path_request()) {
        engine_.send_path_request(request->to, {.direct = request->direct});
    }
    while (const auto news = engine_.routing_news().poll_path_request()) {
        mesh_.on_path_request(now, news->node, news->message.direct);
    }
}

}  // namespace nexar::detail
