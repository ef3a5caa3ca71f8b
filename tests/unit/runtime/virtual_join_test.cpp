// Joins, renewals and expiry on virtual time: the seed server and the seed line of a node with real
// handshakes on a simulated network, and a wall clock that follows it. Days pass in milliseconds.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "unit/runtime/virtual_join_fixture.hpp"

namespace nexar::runtime {
namespace {

using ::testing::HasSubstr;

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
