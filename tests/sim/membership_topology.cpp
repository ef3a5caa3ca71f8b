#include "sim/membership_topology.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "routing/graph.hpp"

namespace nexar::testing {
namespace {

/// Views of one epoch are equal, except when a planted bug makes two of them: the ranks decide.
class LastGraph {
public:
    explicit LastGraph(const routing::Topology& topology) : topology_(topology) {}

    std::vector<NodeId> neighbours(const View& view, const NodeId& of) {
        std::vector<Rank> ranks;
        ranks.reserve(view.members.size());
        for (const Member& member : view.members) ranks.push_back(member.rank);
        if (graph_ == nullptr || ranks != ranks_) {
            graph_ = std::make_unique<routing::Graph>(topology_, ranks);
            ranks_ = std::move(ranks);
        }
        const auto at = std::ranges::find(view.members, of, &Member::node);
        if (at == view.members.end()) return {};
        std::vector<NodeId> nodes;
        for (const routing::Position one :
             graph_->neighbours(static_cast<routing::Position>(at - view.members.begin())))
            nodes.push_back(view.members[one].node);
        return nodes;
    }

private:
    routing::Topology topology_;
    std::vector<Rank> ranks_{};
    std::unique_ptr<routing::Graph> graph_{};
};

}  // namespace

membership::NeighboursOf neighbours_under(const routing::Topology& topology) {
    return [last = std::make_shared<LastGraph>(topology)](const View& view, const NodeId& of) {
        return last->neighbours(view, of);
    };
}

}  // namespace nexar::testing
