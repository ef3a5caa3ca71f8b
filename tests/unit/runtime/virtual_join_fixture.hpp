#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.hpp"
#include "link/quic/open_carrier.hpp"
#include "link/sim/datagram_net.hpp"
#include "membership/membership.hpp"
#include "runtime/join/seed_line.hpp"
#include "runtime/seed/seed_server.hpp"
#include "security/random_id.hpp"
#include "support/temp_directory.hpp"

/// Seeds and nodes on virtual time, with real handshakes on a simulated network.
namespace nexar::runtime {

using namespace std::chrono_literals;

/// The services of this machine, except the wall clock, which shows the time of the world.
struct VirtualServices {
    explicit VirtualServices(const sim::World& world) : world_(&world) {}

    HostServices services() {
        HostServices made = HostServices::of_this_machine();
        made.wall_clock = [this] { return wall(); };
        made.new_key = [this] {
            ++keys;
            return security::KeyPair::generate();
        };
        return made;
    }
    security::WallTime wall() const {
        const auto passed = world_->now().time_since_epoch();
        return security::WallTime(24h * 365 * 60) +
               std::chrono::duration_cast<security::WallTime::duration>(passed);
    }

    int keys = 0;  // made so far

private:
    const sim::World* world_;
};

/// A seed that runs on virtual time.
class VirtualSeed final : public sim::Actor {
public:
    VirtualSeed(sim::DatagramNet& net, const SeedOptions& options, Config config,
                unsigned index = 1)
        : net_(&net), services_(net.world()) {
        server_ =
            SeedServer::open(options, std::move(config), services_.services(), net.world().now())
                .value();
        host_ = &net.add_host(sim::DatagramNet::address(index),
                              quic::endpoint_options(server_->carrier_options().value()));
        server_->serve(*host_, net.world().now()).value();
        host_->driven_by(*this);
        net.world().add(*this);
    }
    /// As if its process were killed.
    ~VirtualSeed() override {
        net_->world().remove(*this);
        net_->remove_host(*host_);
    }

    void turn(TimePoint now) override { server_->turn(now); }
    std::optional<TimePoint> next_deadline() const override { return server_->next_deadline(); }

    SeedServer& server() { return *server_; }
    sim::DatagramHost& host() { return *host_; }

private:
    sim::DatagramNet* net_;
    VirtualServices services_;
    sim::DatagramHost* host_ = nullptr;
    std::unique_ptr<SeedServer> server_;
};

class VirtualJoiner;

/// Carries the messages of the agreement on views between members, instead of their engines.
class VirtualMesh {
public:
    explicit VirtualMesh(sim::World& world) : world_(&world) {}

    void add(const NodeId& node, VirtualJoiner& joiner) { nodes_[node] = &joiner; }
    void remove(const NodeId& node) { nodes_.erase(node); }
    inline void send(const Identity& from, const membership::Outgoing& outgoing);
    /// Nobody hears from this node, or reaches it.
    void cut(const NodeId& node) { cut_.insert(node); }
    void heal(const NodeId& node) { cut_.erase(node); }

private:
    sim::World* world_;
    std::map<NodeId, VirtualJoiner*> nodes_;
    std::set<NodeId> cut_;
};

/// A node without an engine: its seed line and, once it has a view, its membership.
class VirtualJoiner final : public sim::Actor {
public:
    VirtualJoiner(sim::DatagramNet& net, unsigned index, const std::string& join_string,
                  VirtualMesh* mesh = nullptr, const std::vector<unsigned>& seeds = {1})
        : net_(&net), mesh_(mesh), services_(net.world()) {
        link::CarrierOptions options;
        options.wall_clock = services_.services().wall_clock;
        host_ = &net.add_host(sim::DatagramNet::address(index),
                              quic::endpoint_options(std::move(options)));
        JoinTerms terms;
        terms.join = security::JoinString::parse(join_string).value();
        for (const unsigned seed : seeds) terms.seeds.push_back(sim::DatagramNet::address(seed));
        terms.addresses = {host_->address()};
        terms.host = "virtual";
        line_.emplace(*host_, std::move(terms), security::KeyPair::generate().value(),
                      services_.services());
        host_->driven_by(*this);
        net.world().add(*this);
    }
    /// As if its process were killed.
    ~VirtualJoiner() override {
        net_->world().remove(*this);
        net_->remove_host(*host_);
        if (mesh_ != nullptr && admitted_) mesh_->remove(identity().node);
    }

    void turn(TimePoint now) override {
        host_->on_ready(now);
        host_->flush(now);
        while (const auto event = host_->poll_event()) {
            line_->handle(now, *event);
            if (std::holds_alternative<port::Down>(event->what)) host_->forget(event->link);
        }
        line_->turn(now);
        if (auto admitted = line_->admission()) admitted_ = std::move(admitted);
        if (auto view = line_->view()) {
            view_ = std::move(view);
            if (mesh_ != nullptr) begin_membership(now);
        }
        if (membership_) follow_membership(now);
        host_->flush(now);
    }
    std::optional<TimePoint> next_deadline() const override {
        std::optional<TimePoint> due = host_->next_deadline();
        const auto at = [&](const std::optional<TimePoint>& time) {
            if (time) due = due ? std::min(*due, *time) : time;
        };
        at(line_->next_deadline());
        if (membership_) at(membership_->next_deadline());
        if (!inbox_.empty()) due = net_->world().now();
        return due;
    }
    void arrive(const Identity& from, const membership::Message& message) {
        inbox_.push_back({.from = from, .message = message});
        net_->world().touch(*this);
    }
    /// Leaves the cluster in good order.
    void leave() {
        membership_->leave(net_->world().now());
        net_->world().touch(*this);
    }

    SeedLine& line() { return *line_; }
    sim::DatagramHost& host() { return *host_; }
    const std::optional<Admitted>& admitted() const { return admitted_; }
    const Identity& identity() const { return admitted_->credentials->identity(); }
    /// The newest view.
    const std::optional<View>& view() const { return view_; }
    bool evicted() const { return evicted_; }
    bool is_member(std::size_t members) const {
        return view_ && view_->members.size() == members && !evicted_;
    }
    int renewal_keys() const { return services_.keys; }

private:
    void begin_membership(TimePoint now) {
        membership_.emplace(now, identity(), membership::Vote{.view = *view_},
                            membership::Options{.random_seed = view_->members.size()});
        mesh_->add(identity().node, *this);
    }
    void follow_membership(TimePoint now) {
        for (const FromSeed& one : std::exchange(inbox_, {})) {
            membership_->handle(now, one.from, false, one.message);
        }
        while (const auto one = line_->poll_membership()) {
            membership_->handle(now, one->from, true, one->message);
        }
        if (const auto witness = line_->better_witness(now, 5s)) {
            membership_->propose_witness(now, *witness);
        }
        membership_->turn(now);
        while (membership_->unkept()) membership_->kept();
        while (const auto event = membership_->poll_event()) {
            if (const auto* decided = std::get_if<membership::Decided>(&*event)) {
                view_ = decided->view;
                line_->set_view(*view_);
            }
            if (std::holds_alternative<membership::Evicted>(*event)) evicted_ = true;
        }
        while (const auto outgoing = membership_->poll_outgoing()) {
            if (view_->find(outgoing->to) != nullptr) {
                mesh_->send(identity(), *outgoing);
            } else {
                line_->send_membership(outgoing->to, outgoing->message);
            }
        }
    }

    sim::DatagramNet* net_;
    VirtualMesh* mesh_;
    VirtualServices services_;
    sim::DatagramHost* host_ = nullptr;
    std::optional<SeedLine> line_;
    std::optional<membership::Membership> membership_;
    std::vector<FromSeed> inbox_;
    std::optional<Admitted> admitted_;
    std::optional<View> view_;
    bool evicted_ = false;
};

void VirtualMesh::send(const Identity& from, const membership::Outgoing& outgoing) {
    if (cut_.contains(from.node) || cut_.contains(outgoing.to)) return;
    world_->after(1ms, [this, from, outgoing] {
        const auto found = nodes_.find(outgoing.to);
        if (found != nodes_.end()) found->second->arrive(from, outgoing.message);
    });
}

class VirtualJoin : public ::testing::Test {
protected:
    void start_seed(int world, std::vector<NamedValue> settings = {}) {
        SeedOptions options;
        options.world = world;
        seed_.emplace(net_, options,
                      Config::resolve(kSettings, {.code = std::move(settings)}).value());
    }
    std::string token(std::chrono::seconds ttl = 1h, int uses = 1) {
        return seed_->server().create_token({.uses = uses, .ttl = ttl}).value();
    }

    sim::World world_{7};
    sim::DatagramNet net_{world_};
    std::optional<VirtualSeed> seed_;
};

/// A cluster whose members come and go.
class VirtualGrow : public ::testing::Test {
protected:
    void start_seed(int world, int max_world = 0) {
        seed_options_.world = world;
        seed_options_.max_world = max_world;
        seed_options_.state_dir = state_directory();
        restart_seed();
    }
    std::string state_directory() const { return state_.path() + "/state"; }
    void restart_seed() {
        seed_.reset();
        seed_.emplace(net_, seed_options_, Config::resolve(kSettings, {}).value());
    }
    std::string token(int uses) { return seed_->server().create_token({.uses = uses}).value(); }

    VirtualJoiner& join(const std::string& join_string) {
        nodes_.push_back(
            std::make_unique<VirtualJoiner>(net_, ++last_index_, join_string, &mesh_, seeds_));
        return *nodes_.back();
    }
    /// Starts a seed and as many members.
    void form(int world, int max_world = 0) {
        start_seed(world, max_world);
        const std::string join_string = token(world);
        for (int i = 0; i < world; ++i) {
            const VirtualJoiner& joiner = join(join_string);
            // So that nodes get their ranks in order.
            ASSERT_TRUE(world_.run_until([&] { return joiner.admitted().has_value(); }, 10s));
        }
        ASSERT_TRUE(all_have(static_cast<std::size_t>(world)));
    }
    /// Waits until every node has a view with this number of members.
    bool all_have(std::size_t members, Duration at_most = 10s) {
        return world_.run_until(
            [&] {
                return std::ranges::all_of(nodes_, [&](const auto& one) {
                    return one->is_member(members) && one->view() == nodes_.front()->view();
                });
            },
            at_most);
    }
    bool seed_has(std::size_t members, Duration at_most = 10s) {
        return world_.run_until(
            [&] {
                const auto& view = seed_->server().view();
                return view && view->members.size() == members &&
                       seed_->server().status().find("not connected") == std::string::npos;
            },
            at_most);
    }

    TempDirectory state_;
    sim::World world_{11};
    sim::DatagramNet net_{world_};
    VirtualMesh mesh_{world_};
    SeedOptions seed_options_;
    std::optional<VirtualSeed> seed_;
    std::vector<std::unique_ptr<VirtualJoiner>> nodes_;
    unsigned last_index_ = 10;
    std::vector<unsigned> seeds_{1};  // that nodes know
};

}  // namespace nexar::runtime
