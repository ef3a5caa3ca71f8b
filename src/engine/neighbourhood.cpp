#include "engine/neighbourhood.hpp"

namespace nexar::engine {

namespace {

std::vector<Rank> ranks_of(const View& view) {
    std::vector<Rank> ranks;
    ranks.reserve(view.members.size());
    for (const Member& member : view.members) ranks.push_back(member.rank);
    return ranks;
}

}  // namespace

routing::Graph Neighbourhood::make_graph(const View& view) const {
    const auto hosts = hosts_ ? hosts_(view) : std::vector<routing::Host>{};
    return {topology_, ranks_of(view), hosts};
}

std::shared_ptr<const routing::Graph> Neighbourhood::graph(const View& view) {
    std::vector<Rank> ranks = ranks_of(view);
    if (graph_ != nullptr && epoch_ == view.epoch && ranks_ == ranks) return graph_;
    graph_ = std::make_shared<const routing::Graph>(make_graph(view));
    ranks_ = std::move(ranks);
    epoch_ = view.epoch;
    return graph_;
}

std::vector<NodeId> Neighbourhood::neighbours(const View& view, const NodeId& of) {
    std::vector<NodeId> nodes;
    const Member* const member = view.find(of);
    if (member == nullptr) return nodes;
    const auto all = graph(view);
    const auto own = static_cast<routing::Position>(member - view.members.data());
    for (const routing::Position one : all->neighbours(own)) {
        nodes.push_back(view.members[one].node);
    }
    return nodes;
}

}  // namespace nexar::engine
