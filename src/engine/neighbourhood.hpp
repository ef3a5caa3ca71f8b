#pragma once

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/identity.hpp"
#include "base/view.hpp"
#include "routing/graph.hpp"
#include "routing/topology.hpp"

namespace nexar::engine {

/// Which members of a view are neighbours. All members come to the same result. Keeps the graph of
/// the last view that it was asked about. Not thread-safe.
class Neighbourhood {
public:
    /// The hosts of all members: those on one host are neighbours whatever the topology. An empty
    /// function: every member has a host of its own.
    using Hosts = std::function<std::vector<routing::Host>(const View&)>;

    explicit Neighbourhood(const routing::Topology& topology, Hosts hosts = {})
        : topology_(topology), hosts_(std::move(hosts)) {}

    const routing::Topology& topology() const noexcept { return topology_; }
    /// False if all members are neighbours in every view.
    bool sparse() const noexcept { return topology_.kind() != routing::Topology::Kind::full; }
    /// Positions are indices of `view.members`.
    std::shared_ptr<const routing::Graph> graph(const View& view);
    /// The same, and keeps nothing.
    routing::Graph make_graph(const View& view) const;
    /// Empty if the view does not contain the node.
    std::vector<NodeId> neighbours(const View& view, const NodeId& of);
    /// neighbours() as a function, which must not outlive this object.
    std::function<std::vector<NodeId>(const View&, const NodeId&)> function() {
        return [this](const View& view, const NodeId& of) { return neighbours(view, of); };
    }

private:
    routing::Topology topology_;
    Hosts hosts_;
    Epoch epoch_{};
    std::vector<Rank> ranks_;  // of the members for which the graph was made
    std::shared_ptr<const routing::Graph> graph_{};
};

}  // namespace nexar::engine
