#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/nexar.hpp>
#include <string>

#include "process/p2p/child_ranks.hpp"
#include "routing/graph.hpp"

namespace nexar::testing {

struct SparseShape {
    int world = 0;
    std::string topology{};
    /// The setting failure_budget. So long that only an end that the host reports counts as a
    /// failure: a busy machine must not fail a test.
    std::string budget = "10s";
};

/// The edges by the rule of the topology, in the world that has formed first.
routing::Graph graph_of(const SparseShape& shape);

/// A cluster without shared memory whose seed and ranks are children of the test.
class SparseWorld : public ChildRanks {
public:
    using Body = std::function<void(Node& node, const Channel& parent)>;

    /// Starts the ranks, each of which joins and then runs `body`. They end when this object does,
    /// without closing their nodes.
    SparseWorld(const SparseShape& shape, const Body& body);

private:
    std::unique_ptr<ChildProcess> seed_;
};

}  // namespace nexar::testing
