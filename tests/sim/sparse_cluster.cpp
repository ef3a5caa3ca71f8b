#include "sparse_cluster.hpp"

#include <algorithm>
#include <utility>

#include "base/settings.hpp"
#include "unit/routing/views.hpp"

namespace nexar::testing {

namespace {

Config settings_of(const std::string& topology) {
    std::vector<NamedValue> values{{"link", "quic"}, {"topology", topology}};
    return Config::resolve(kSettings, {.code = std::move(values)}).value();
}

routing::Graph graph_of(const SparseShape& shape) {
    const auto ranks = routing::testing::consecutive(static_cast<std::uint32_t>(shape.nodes));
    return {routing::Topology::parse(shape.topology).value(), ranks};
}

/// The port names the machine.
Address address_of(std::size_t machine) {
    return sim::DatagramNet::address(static_cast<unsigned>(machine + 1))
        .with_port(static_cast<std::uint16_t>(7400 + machine));
}

std::size_t machine_at(const Address& address) {
    return static_cast<std::size_t>(address.port() - 7400);
}

}  // namespace

/// A node and its program, which does what the test posts.
class SparseCluster::Process final : public chaos::Program {
public:
    explicit Process(SparseCluster& cluster) : cluster_(&cluster) {}

    void viewed(const View& /*view*/) override {}
    void left_behind() override {}
    void entered(engine::Context& made, const std::vector<NodeId>& /*nodes*/) override {
        world = &made;
    }
    void ended(engine::Operation& operation) override {
        if (cluster_->on_done) cluster_->on_done(operation);
    }
    void turned(TimePoint /*now*/) override {
        for (const auto& one : std::exchange(posted, {})) one(node->engine());
    }
    std::optional<TimePoint> next_deadline() const override {
        if (posted.empty()) return std::nullopt;
        return TimePoint{};
    }

    engine::Context* world = nullptr;
    std::vector<std::function<void(engine::Engine&)>> posted{};
    std::unique_ptr<chaos::Node> node{};

private:
    SparseCluster* cluster_;
};

SparseCluster::SparseCluster(const SparseShape& shape)
    : shape_(shape),
      world_(shape.seed),
      net_(world_),
      settings_(settings_of(shape.topology)),
      graph_(graph_of(shape)),
      processes_(shape.nodes),
      bytes_((shape.nodes + 1) * (shape.nodes + 1)) {
    net_.tap = [this](sim::Datagram& datagram) {
        note(datagram);
        return true;
    };
}

SparseCluster::~SparseCluster() {
    on_done = {};
    net_.tap = {};
    for (std::size_t rank = 0; rank < size(); ++rank) kill(rank);
    seed_.reset();
}

chaos::Node& SparseCluster::node(std::size_t rank) {
    return *processes_[rank]->node;
}

engine::Context& SparseCluster::context(std::size_t rank) {
    return *processes_[rank]->world;
}

void SparseCluster::note(const sim::Datagram& datagram) {
    bytes_[at(machine_at(datagram.from), machine_at(datagram.to))] += datagram.bytes.size();
}

void SparseCluster::start_seed() {
    SeedOptions options;
    options.world = static_cast<int>(size());
    seed_ = std::make_unique<chaos::Seed>(net_, address_of(0), options, settings_,
                                          world_.random().fork());
    join_ = seed_->server()
                .create_token({.uses = static_cast<int>(size()), .ttl = std::chrono::hours(24)})
                .value();
}

void SparseCluster::start(std::size_t machine) {
    const std::size_t rank = machine - 1;
    auto process = std::make_unique<Process>(*this);
    runtime::JoinTerms terms;
    terms.join = security::JoinString::parse(join_).value();
    terms.wanted_rank = Rank(static_cast<std::uint32_t>(rank));
    terms.seeds = {address_of(0)};
    terms.addresses = {address_of(machine)};
    terms.host = "machine-" + std::to_string(machine);
    process->node =
        std::make_unique<chaos::Node>(net_,
                                      chaos::Node::Setup{.address = address_of(machine),
                                                         .terms = std::move(terms),
                                                         .config = settings_,
                                                         .random = world_.random().fork()},
                                      *process);
    processes_[rank] = std::move(process);
}

bool SparseCluster::formed() {
    for (; formed_ < size(); ++formed_) {
        Process& one = *processes_[formed_];
        if (one.world == nullptr) return false;
        const auto neighbours = graph_.neighbours(static_cast<routing::Position>(formed_));
        const bool connected = std::ranges::all_of(neighbours, [&](routing::Position other) {
            const Process& there = *processes_[other];
            return there.world != nullptr &&
                   one.node->engine().is_connected(there.node->self().node);
        });
        if (!connected) return false;
    }
    return true;
}

std::optional<Duration> SparseCluster::form(Duration at_most) {
    const TimePoint began = world_.now();
    start_seed();
    for (std::size_t machine = 1; machine <= size(); ++machine) start(machine);
    if (!world_.run_until([this] { return formed(); }, at_most)) return std::nullopt;
    return world_.now() - began;
}

void SparseCluster::post(std::size_t rank, std::function<void(engine::Engine&)> what) {
    processes_[rank]->posted.push_back(std::move(what));
    world_.touch(node(rank));
}

std::vector<engine::Context*> SparseCluster::make_communicator(std::uint64_t id,
                                                               std::span<const std::size_t> ranks) {
    std::vector<NodeId> nodes;
    nodes.reserve(ranks.size());
    for (const std::size_t rank : ranks) nodes.push_back(node(rank).self().node);
    std::vector<engine::Context*> contexts;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        contexts.push_back(&node(ranks[i]).engine().add_context(
            ContextId(id), nodes, Rank(static_cast<std::uint32_t>(i))));
    }
    return contexts;
}

void SparseCluster::kill(std::size_t rank) {
    if (processes_[rank]) processes_[rank]->node.reset();
}

std::set<std::pair<std::size_t, std::size_t>> SparseCluster::connections() const {
    std::set<std::pair<std::size_t, std::size_t>> pairs;
    for (std::size_t a = 0; a < size(); ++a) {
        for (std::size_t b = 0; b < size(); ++b) {
            if (bytes_between(a, b) > 0) pairs.insert(std::minmax(a, b));
        }
    }
    return pairs;
}

std::uint64_t SparseCluster::bytes_between(std::size_t from, std::size_t to) const {
    return bytes_[at(from + 1, to + 1)];
}

}  // namespace nexar::testing
