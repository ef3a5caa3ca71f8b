#include "sim/ring_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/settings.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;

constexpr std::size_t kEthernet = 1472;  // the largest datagram over IPv4
constexpr Duration kFormationTime = 20s;

Config ring_settings() {
    std::vector<NamedValue> values{{"link", "quic"}, {"topology", "k_regular:2"}};
    return Config::resolve(kSettings, {.code = std::move(values)}).value();
}

Address seed_address() {
    return sim::DatagramNet::address(1);
}

Address address_of(std::uint32_t rank) {
    return sim::DatagramNet::address(rank + 2);
}

}  // namespace

RingCluster::RingCluster(std::uint64_t seed, std::uint32_t nodes)
    : nodes_(nodes), world_(seed), net_(world_) {
    net_.weather = {.delay = 200us, .mtu = kEthernet};
}

RingCluster::~RingCluster() {
    processes_.clear();
    seed_.reset();
}

bool RingCluster::form() {
    SeedOptions options;
    options.world = static_cast<int>(nodes_);
    options.state_dir = state_.path();
    seed_ = std::make_unique<chaos::Seed>(net_, seed_address(), options, ring_settings(),
                                          world_.random().fork());
    for (std::uint32_t rank = 0; rank < nodes_; ++rank) add_process(rank);
    const auto connected = [&](std::uint32_t rank) {
        return processes_[rank]->program.world() != nullptr &&
               link(rank, before(rank)) != nullptr && link(rank, after(rank)) != nullptr;
    };
    return run_until(
        [&] {
            for (std::uint32_t rank = 0; rank < nodes_; ++rank) {
                if (!node(rank).admitted() || !connected(rank)) return false;
            }
            return true;
        },
        kFormationTime);
}

void RingCluster::add_process(std::uint32_t rank) {
    Process& process = *processes_.emplace_back(std::make_unique<Process>());
    runtime::JoinTerms terms;
    terms.join =
        security::JoinString::parse(seed_->server().create_token({.uses = 1, .ttl = 24h}).value())
            .value();
    terms.seeds = {seed_address()};
    terms.wanted_rank = Rank(rank);
    terms.addresses = {address_of(rank)};
    terms.host = fmt::format("machine-{}", rank);
    process.node =
        std::make_unique<chaos::Node>(net_,
                                      chaos::Node::Setup{.address = address_of(rank),
                                                         .terms = std::move(terms),
                                                         .config = ring_settings(),
                                                         .random = world_.random().fork()},
                                      process.program);
}

Exchange& RingCluster::send(std::uint32_t from, std::uint32_t to, std::size_t bytes) {
    constexpr Tag kTag{7};
    Exchange& message =
        *messages_.emplace_back(std::make_unique<Exchange>(messages_.size() + 1, bytes));
    message.receive.pattern = {.source = Rank(from), .tag = kTag};
    message.send.to = Rank(to);
    message.send.tag = kTag;
    node(to).engine().start(*processes_[to]->program.world(), message.receive);
    node(from).engine().start(*processes_[from]->program.world(), message.send);
    poke(to);
    poke(from);
    return message;
}

void RingCluster::poke(std::uint32_t rank) {
    processes_.at(rank)->program.poke();
    world_.touch(node(rank));
}

bool RingCluster::run_until_ended(Duration at_most) {
    return run_until(
        [&] {
            return std::ranges::all_of(messages_, [](const auto& one) { return one->ended(); });
        },
        at_most);
}

bool RingCluster::all_arrived() const {
    return std::ranges::all_of(messages_, [](const auto& one) { return one->arrived(); });
}

bool RingCluster::is_whole() {
    const View& first = node(0).members().view();
    const auto& of_seed = seed_->server().view();
    if (first.members.size() != nodes_ || !of_seed || of_seed->epoch != first.epoch) return false;
    return std::ranges::all_of(processes_, [&](const auto& one) {
        const bool same = one->node->members().view().epoch == first.epoch;
        return same && one->program.views() == 1 && !one->node->members().evicted();
    });
}

}  // namespace nexar::testing
