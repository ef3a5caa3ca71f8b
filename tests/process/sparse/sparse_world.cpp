#include "process/sparse/sparse_world.hpp"

#include <utility>

#include "process/p2p/member.hpp"
#include "unit/routing/views.hpp"

namespace nexar::testing {

namespace {

void run_seed(const SparseShape& shape, const Channel& parent) {
    SeedOptions options;
    options.listen = "127.0.0.1:0";
    options.world = shape.world;
    options.settings = {
        {"link", "quic"}, {"topology", shape.topology}, {"failure_budget", shape.budget}};
    Seed seed(options);
    parent.say(seed.create_token({.uses = shape.world}));
    await(parent, "leave", std::chrono::hours(1));
}

Node join_as(int rank, const std::string& join_string) {
    JoinOptions options;
    options.join_string = join_string;
    options.rank = rank;
    options.settings = {{"formation_timeout", "40s"},
                        {"collective_timeout", "40s"},
                        {"on_abort", "error"},
                        {"log_level", "error"}};
    return join(options);
}

}  // namespace

routing::Graph graph_of(const SparseShape& shape) {
    const auto ranks = routing::testing::consecutive(static_cast<std::uint32_t>(shape.world));
    return {routing::Topology::parse(shape.topology).value(), ranks};
}

SparseWorld::SparseWorld(const SparseShape& shape, const Body& body) {
    seed_ = std::make_unique<ChildProcess>([&](const Channel& parent) { run_seed(shape, parent); });
    const std::string join_string = hear(seed_->channel(), kWithin);
    for (int rank = 0; rank < shape.world; ++rank) {
        add([&, rank](const Channel& parent) {
            Node node = join_as(rank, join_string);
            body(node, parent);
        });
    }
}

}  // namespace nexar::testing
