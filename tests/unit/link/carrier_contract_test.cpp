// What port::Carrier promises about dialing, and port::Link about its peer, for every kind of link.

#include <gtest/gtest.h>

#include <array>

#include "support/quic_pair.hpp"
#include "support/shm_pair.hpp"
#include "unit/link/sim/sim_pair.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;

/// How the tests below reach the parts of a pair.
template <class Pair>
struct Kind;

template <>
struct Kind<SimPair> {
    static port::Carrier& client(SimPair& pair) { return pair.a; }
    static port::Carrier& server(SimPair& pair) { return pair.b; }
    static port::DialTarget target(SimPair& pair) {
        return {.peer = port::MemberTarget{.node = pair.b.identity().node}};
    }
    static constexpr bool kHasAddresses = false;
    static constexpr bool kCanCarryJoins = false;
};

template <>
struct Kind<QuicPair> {
    static port::Carrier& client(QuicPair& pair) { return pair.client_side.host(); }
    static port::Carrier& server(QuicPair& pair) { return pair.server_side.host(); }
    static port::DialTarget target(QuicPair& pair) {
        return {.address = pair.server_side.host().address(),
                .peer = port::MemberTarget{.node = TestCluster::node_id(2)}};
    }
    static constexpr bool kHasAddresses = true;
    static constexpr bool kCanCarryJoins = true;
};

template <>
struct Kind<ShmPair> {
    static port::Carrier& client(ShmPair& pair) { return pair.a; }
    static port::Carrier& server(ShmPair& pair) { return pair.b; }
    static port::DialTarget target(ShmPair& pair) {
        return {.peer = port::MemberTarget{.node = pair.b.identity().node}};
    }
    static constexpr bool kHasAddresses = false;
    static constexpr bool kCanCarryJoins = false;
};

template <class Pair>
class CarrierContract : public ::testing::Test {
protected:
    using OfKind = Kind<Pair>;

    port::Carrier& client() { return OfKind::client(pair_); }
    port::Carrier& server() { return OfKind::server(pair_); }
    TimePoint now() const { return pair_.world.now(); }
    LinkEnd& dial(const port::DialTarget& target) {
        id_ = client().dial(now(), target).value();
        return pair_.client_side.dialed(id_);
    }
    LinkEnd& dial() { return dial(OfKind::target(pair_)); }
    bool connect() {
        LinkEnd& end = dial();
        return pair_.run_until(
            [&] { return end.is_up() && pair_.server_side.accepted_count() == 1; });
    }
    LinkEnd& accepted() { return pair_.server_side.accepted(); }

    Pair pair_;
    port::LinkId id_{};
};

using Kinds = ::testing::Types<SimPair, QuicPair, ShmPair>;
TYPED_TEST_SUITE(CarrierContract, Kinds);

TYPED_TEST(CarrierContract, a_link_to_a_dialed_member_comes_up_on_both_sides) {
    LinkEnd& end = this->dial();
    EXPECT_FALSE(end.is_up()) << "dial() only enqueues";
    ASSERT_TRUE(this->pair_.run_until(
        [&] { return end.is_up() && this->pair_.server_side.accepted_count() == 1; }));
    EXPECT_EQ(end.link().id(), this->id_);
    const auto target = TestFixture::OfKind::target(this->pair_);
    EXPECT_EQ(end.link().peer().node, std::get<port::MemberTarget>(target.peer).node);
}

TYPED_TEST(CarrierContract, a_link_to_an_unexpected_peer_never_comes_up) {
    port::DialTarget target = TestFixture::OfKind::target(this->pair_);
    target.peer = port::MemberTarget{.node = TestCluster::node_id(77)};
    LinkEnd& end = this->dial(target);
    ASSERT_TRUE(this->pair_.run_until([&] { return end.down().has_value(); }));
    EXPECT_FALSE(end.was_up());
}

TYPED_TEST(CarrierContract, an_abandoned_dial_goes_down_with_the_next_flush) {
    LinkEnd& end = this->dial();
    this->client().abandon(this->id_);
    this->pair_.world.run_for(0s);
    ASSERT_TRUE(end.down().has_value());
    EXPECT_EQ(end.down()->code(), Errc::cancelled);
    this->pair_.world.run_for(5s);
    EXPECT_FALSE(end.was_up());
    EXPECT_EQ(this->pair_.server_side.accepted_count(), 0U);
}

TYPED_TEST(CarrierContract, abandoning_an_unknown_link_or_one_that_is_up_does_nothing) {
    ASSERT_TRUE(this->connect());
    this->client().abandon(port::LinkId(123'456));
    this->client().abandon(this->id_);
    this->pair_.world.run_for(1s);
    EXPECT_TRUE(this->accepted().is_up());
}

TYPED_TEST(CarrierContract, a_dial_during_which_another_is_abandoned_still_succeeds) {
    this->dial();
    const port::LinkId first = this->id_;
    LinkEnd& second = this->dial();
    EXPECT_NE(first, this->id_);
    this->client().abandon(first);
    EXPECT_TRUE(this->pair_.run_until([&] { return second.is_up(); }));
}

TYPED_TEST(CarrierContract, a_kind_without_seeds_says_that_it_cannot_dial_them) {
    for (const port::DialTarget& target :
         {port::DialTarget{.address = sim::DatagramNet::address(9), .peer = port::SeedTarget{}},
          port::DialTarget{.address = sim::DatagramNet::address(9), .peer = port::JoinTarget{}}}) {
        const auto id = this->client().dial(this->now(), target);
        EXPECT_EQ(id.has_value(), TestFixture::OfKind::kCanCarryJoins);
        if (id) {
            this->pair_.client_side.dialed(*id);
        } else {
            EXPECT_EQ(id.error().code(), Errc::unsupported);
        }
    }
}

TYPED_TEST(CarrierContract, both_ends_export_the_same_key_or_say_that_there_is_none) {
    ASSERT_TRUE(this->connect());
    std::array<std::byte, 32> here{};
    std::array<std::byte, 32> there{};
    std::array<std::byte, 32> other{};
    const port::Link& dialer = this->pair_.client_side.dialed(this->id_).link();
    const auto exported = dialer.export_key("EXPORTER-test", here);
    const auto matching = this->accepted().link().export_key("EXPORTER-test", there);
    EXPECT_EQ(exported.has_value(), TestFixture::OfKind::kCanCarryJoins);
    ASSERT_EQ(exported.has_value(), matching.has_value());
    if (!exported) {
        EXPECT_EQ(exported.error().code(), Errc::unsupported);
        return;
    }
    EXPECT_EQ(here, there);
    ASSERT_TRUE(dialer.export_key("EXPORTER-other", other).has_value());
    EXPECT_NE(here, other);
}

TYPED_TEST(CarrierContract, only_a_joiner_sees_the_ca_of_its_peer) {
    ASSERT_TRUE(this->connect());
    EXPECT_TRUE(this->pair_.client_side.dialed(this->id_).link().peer_ca().empty());
    EXPECT_TRUE(this->accepted().link().peer_ca().empty());
}

TYPED_TEST(CarrierContract, the_remote_address_is_where_the_peer_listens) {
    ASSERT_TRUE(this->connect());
    const Address remote = this->pair_.client_side.dialed(this->id_).link().remote();
    EXPECT_EQ(remote, this->server().local());
    EXPECT_EQ(this->accepted().link().remote(), this->client().local());
    EXPECT_EQ(remote != Address{}, TestFixture::OfKind::kHasAddresses);
}

TYPED_TEST(CarrierContract, on_ready_returns_false_when_nothing_has_arrived) {
    ASSERT_TRUE(this->connect());
    this->pair_.world.run_for(500ms);
    EXPECT_FALSE(this->client().on_ready(this->now()));
    EXPECT_FALSE(this->server().on_ready(this->now()));
}

TYPED_TEST(CarrierContract, a_flush_is_urgent_while_a_write_is_pending) {
    ASSERT_TRUE(this->connect());
    this->pair_.world.run_for(500ms);
    LinkEnd& end = this->pair_.client_side.dialed(this->id_);
    ASSERT_TRUE(end.write(port::Lane::control, pattern(1, 100)));
    EXPECT_TRUE(this->client().flush_is_urgent(this->now()));
}

TYPED_TEST(CarrierContract, hints_do_not_change_what_arrives) {
    const Address here = this->client().local();
    this->client().set_crowded(true);
    this->server().set_members({&here, 1});
    ASSERT_TRUE(this->connect());
    this->client().set_crowded(false);
    const auto bytes = pattern(2, 100'000);
    ASSERT_TRUE(this->pair_.client_side.dialed(this->id_).write(port::Lane::eager, bytes));
    this->pair_.world.run_for(500ms);
    EXPECT_EQ(this->accepted().lane(port::Lane::eager).bytes, bytes);
}

}  // namespace

}  // namespace nexar::testing
