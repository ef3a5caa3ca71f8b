// Joins, renewals and expiry on virtual time: the seed server and the seed line of a node with real
// handshakes on a simulated network, and a wall clock that follows it. Days pass in milliseconds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "base/settings.hpp"
#include "link/quic/open_carrier.hpp"
#include "link/sim/datagram_net.hpp"
#include "runtime/join/seed_line.hpp"
#include "runtime/seed/seed_server.hpp"
#include "security/random_id.hpp"

namespace nexar::runtime {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

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
    VirtualSeed(sim::DatagramNet& net, const SeedOptions& options, Config config)
        : services_(net.world()) {
        server_ =
            SeedServer::open(options, std::move(config), services_.services(), net.world().now())
                .value();
        host_ = &net.add_host(sim::DatagramNet::address(1),
                              quic::endpoint_options(server_->carrier_options().value()));
        server_->serve(*host_, net.world().now()).value();
        host_->driven_by(*this);
        net.world().add(*this);
    }

    void turn(TimePoint now) override { server_->turn(now); }
    std::optional<TimePoint> next_deadline() const override { return server_->next_deadline(); }

    SeedServer& server() { return *server_; }
    sim::DatagramHost& host() { return *host_; }

private:
    VirtualServices services_;
    sim::DatagramHost* host_ = nullptr;
    std::unique_ptr<SeedServer> server_;
};

/// The seed line of a node, without anything else of the node.
class VirtualJoiner final : public sim::Actor {
public:
    VirtualJoiner(sim::DatagramNet& net, unsigned index, const std::string& join_string)
        : services_(net.world()) {
        link::CarrierOptions options;
        options.wall_clock = services_.services().wall_clock;
        host_ = &net.add_host(sim::DatagramNet::address(index),
                              quic::endpoint_options(std::move(options)));
        JoinTerms terms;
        terms.join = security::JoinString::parse(join_string).value();
        terms.seeds = {sim::DatagramNet::address(1)};
        terms.addresses = {host_->address()};
        terms.host = "virtual";
        line_.emplace(*host_, std::move(terms), security::KeyPair::generate().value(),
                      services_.services());
        host_->driven_by(*this);
        net.world().add(*this);
    }

    void turn(TimePoint now) override {
        host_->on_ready(now);
        host_->flush(now);
        while (const auto event = host_->poll_event()) {
            line_->handle(now, *event);
            if (std::holds_alternative<port::Down>(event->what)) host_->forget(event->link);
        }
        line_->turn(now);
        host_->flush(now);
        if (auto admitted = line_->admission()) admitted_ = std::move(admitted);
        if (auto view = line_->view()) view_ = std::move(view);
    }
    std::optional<TimePoint> next_deadline() const override {
        const auto carrier = host_->next_deadline();
        const auto line = line_->next_deadline();
        if (!carrier || !line) return carrier ? carrier : line;
        return std::min(*carrier, *line);
    }

    SeedLine& line() { return *line_; }
    sim::DatagramHost& host() { return *host_; }
    const std::optional<Admitted>& admitted() const { return admitted_; }
    const std::optional<View>& view() const { return view_; }
    int renewal_keys() const { return services_.keys; }

private:
    VirtualServices services_;
    sim::DatagramHost* host_ = nullptr;
    std::optional<SeedLine> line_;
    std::optional<Admitted> admitted_;
    std::optional<View> view_;
};

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

TEST_F(VirtualJoin, two_nodes_join_and_get_the_same_view) {
    start_seed(2);
    const std::string join = token(1h, 2);
    VirtualJoiner first(net_, 2, join);
    VirtualJoiner second(net_, 3, join);
    ASSERT_TRUE(world_.run_until([&] { return first.view() && second.view(); }, 10s));
    EXPECT_EQ(first.view()->epoch, second.view()->epoch);
    ASSERT_EQ(first.view()->members.size(), 2U);
    EXPECT_NE(first.view()->find(first.admitted()->credentials->identity().node), nullptr);
    EXPECT_NE(first.view()->find(second.admitted()->credentials->identity().node), nullptr);
    EXPECT_TRUE(seed_->server().formed());
}

TEST_F(VirtualJoin, certificates_are_valid_by_the_wall_clock_that_the_seed_was_given) {
    start_seed(1, {{"certificate_lifetime", "2h"}});
    VirtualJoiner joiner(net_, 2, token());
    ASSERT_TRUE(world_.run_until([&] { return joiner.admitted().has_value(); }, 10s));
    const VirtualServices clock(world_);
    const auto validity = joiner.admitted()->credentials->validity();
    EXPECT_LE(validity.not_before, clock.wall());
    EXPECT_GT(validity.not_after, clock.wall() + 1h);
    EXPECT_LT(validity.not_after, clock.wall() + 3h);
}

TEST_F(VirtualJoin, a_token_expires_by_the_wall_clock_that_the_seed_was_given) {
    start_seed(2);
    const std::string join = token(1h, 2);
    world_.run_for(59min);
    VirtualJoiner early(net_, 2, join);
    ASSERT_TRUE(world_.run_until([&] { return early.admitted().has_value(); }, 10s));
    world_.run_for(2min);
    VirtualJoiner late(net_, 3, join);
    ASSERT_TRUE(world_.run_until([&] { return late.line().failure().has_value(); }, 10s));
    EXPECT_EQ(late.line().failure()->code(), Errc::unauthenticated);
    EXPECT_THAT(late.line().failure()->cause(), HasSubstr("expired"));
}

TEST_F(VirtualJoin, a_node_renews_its_certificate_at_half_its_life) {
    start_seed(1, {{"certificate_lifetime", "2h"}});
    VirtualJoiner joiner(net_, 2, token());
    ASSERT_TRUE(world_.run_until([&] { return joiner.view().has_value(); }, 10s));
    world_.run_for(50min);
    EXPECT_EQ(joiner.renewal_keys(), 0);
    world_.run_for(15min);
    EXPECT_EQ(joiner.renewal_keys(), 1);
    world_.run_for(4h);
    EXPECT_EQ(joiner.renewal_keys(), 5);
}

TEST_F(VirtualJoin, a_node_returns_with_its_renewed_certificate_after_days) {
    // The seed's own certificate lives 24 h, so this also needs the renewal of the seed.
    start_seed(2, {{"certificate_lifetime", "12h"}});
    const std::string join = token(1h, 2);
    VirtualJoiner joiner(net_, 2, join);
    VirtualJoiner other(net_, 3, join);
    ASSERT_TRUE(world_.run_until([&] { return joiner.view() && other.view(); }, 10s));
    world_.run_for(72h);
    const auto seed_misses_it = [&] {
        return seed_->server().status().find("not connected now") != std::string::npos;
    };
    EXPECT_FALSE(seed_misses_it()) << seed_->server().status();
    net_.partition(joiner.host(), seed_->host());
    ASSERT_TRUE(world_.run_until(seed_misses_it, 1min)) << seed_->server().status();
    net_.heal_all();
    EXPECT_TRUE(world_.run_until([&] { return !seed_misses_it(); }, 1min));
    world_.run_for(5s);
    EXPECT_FALSE(seed_misses_it()) << seed_->server().status();
    EXPECT_FALSE(joiner.line().failure().has_value());
}

TEST_F(VirtualJoin, a_node_finds_the_seed_at_the_address_that_answers) {
    start_seed(1);
    const std::string join = token();
    JoinTerms terms;
    terms.join = security::JoinString::parse(join).value();
    terms.seeds = {sim::DatagramNet::address(77), sim::DatagramNet::address(78),
                   sim::DatagramNet::address(1)};
    VirtualServices clock(world_);
    link::CarrierOptions options;
    options.wall_clock = clock.services().wall_clock;
    sim::DatagramHost& host =
        net_.add_host(sim::DatagramNet::address(2), quic::endpoint_options(std::move(options)));
    std::vector<std::pair<Address, TimePoint>> first_packets;
    net_.tap = [&](const sim::Datagram& datagram) {
        const auto known = std::ranges::any_of(
            first_packets, [&](const auto& one) { return one.first == datagram.to; });
        if (!known && datagram.from == host.address()) {
            first_packets.emplace_back(datagram.to, world_.now());
        }
        return true;
    };
    SeedLine line(host, std::move(terms), security::KeyPair::generate().value(), clock.services());
    sim::CarrierLoop loop(host, [&](TimePoint now, const port::LinkEvent& event) {
        line.handle(now, event);
        if (std::holds_alternative<port::Down>(event.what)) host.forget(event.link);
    });
    const TimePoint begun = world_.now();
    for (int i = 0; i < 200 && first_packets.size() < 3; ++i) {
        line.turn(world_.now());
        world_.run_for(1ms);
    }
    ASSERT_EQ(first_packets.size(), 3U);
    EXPECT_EQ(first_packets[0].second, begun);
    EXPECT_EQ(first_packets[1].second, begun + 50ms);
    EXPECT_EQ(first_packets[2].second, begun + 100ms);
    line.close({});
    for (int i = 0; i < 5000 && !line.idle(); ++i) world_.run_for(1ms);
    EXPECT_TRUE(line.idle());
}

}  // namespace
}  // namespace nexar::runtime
