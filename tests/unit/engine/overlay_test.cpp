#include "engine/overlay.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <memory>
#include <utility>

#include "support/fake_link.hpp"
#include "support/linkless_carrier.hpp"
#include "wire/codec.hpp"
#include "wire/plain_envelope.hpp"

namespace nexar::engine {
namespace {

using namespace std::chrono_literals;
using nexar::testing::FakeLink;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Bytes = std::vector<std::byte>;

Bytes packet(unsigned first, std::size_t size = 100) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(first + i * 7);
    return bytes;
}

NodeId node(unsigned number) {
    std::array<std::byte, NodeId::kBytes> bytes{};
    bytes[5] = static_cast<std::byte>(number + 1);
    return NodeId(bytes);
}

Identity identity(unsigned number) {
    return {.cluster = ClusterId(), .node = node(number), .incarnation = Incarnation(1)};
}

/// Link states have their own tests.
class TrustingSigner final : public port::Signer {
public:
    const port::RawKey& key() const noexcept override { return key_; }
    port::Signature sign(std::span<const std::byte> /*bytes*/) const override { return {}; }
    bool verify(std::span<const std::byte> /*bytes*/, const port::RawKey& /*key*/,
                const std::array<std::byte, 32>& /*key_hash*/,
                const port::Signature& /*signature*/) const override {
        return true;
    }

private:
    port::RawKey key_{};
};

/// The ends of this node's tunnels.
class TunnelEnds final : public LinklessCarrier {
public:
    std::optional<port::TunnelPacket> poll_tunnelled() override {
        if (outgoing.empty()) return std::nullopt;
        port::TunnelPacket first = std::move(outgoing.front());
        outgoing.pop_front();
        return first;
    }
    void on_tunnelled(TimePoint /*now*/, const NodeId& from, port::ConstBytes bytes) override {
        arrived.emplace_back(from, Bytes(bytes.begin(), bytes.end()));
    }

    std::deque<port::TunnelPacket> outgoing{};
    std::vector<std::pair<NodeId, Bytes>> arrived{};
};

/// Rank 0 of five, connected to its neighbours.
class OverlayOfFive : public ::testing::Test {
protected:
    OverlayOfFive(const routing::Topology& topology, std::initializer_list<unsigned> neighbours)
        : neighbourhood_(topology) {
        for (unsigned rank = 0; rank < 5; ++rank) {
            view_.members.push_back(
                {.node = node(rank), .incarnation = Incarnation(1), .rank = Rank(rank)});
            if (rank != 0) engine_.add_peer(node(rank));
        }
        engine_.await_verdicts(true);
        engine_.set_view(view_);
        overlay_.adopt(now_, view_, identity(0));
        for (const unsigned rank : neighbours) connect(rank);
        overlay_.turn(now_);
    }
    ~OverlayOfFive() override {
        engine_.close();
        for (auto& [rank, link] : links_) {
            if (!link->is_down()) link->go_down(Error(Errc::closed, "the test is over"));
        }
        pump();
        while (engine_.poll_done() != nullptr) {
        }
    }

    void connect(unsigned rank) {
        auto& link = links_[rank];
        link = std::make_unique<FakeLink>(port::LinkId(100 + rank), identity(rank));
        link->datagram_bytes = 1400;
        link->come_up();
        pump();
    }
    void pump() {
        for (auto& [rank, link] : links_) {
            while (auto event = link->poll_event()) {
                if (!overlay_.take(now_, *event)) engine_.handle(*event);
            }
        }
    }
    void turn(Duration later = Duration::zero()) {
        now_ += later;
        pump();
        overlay_.turn(now_);
    }
    void send(unsigned to, const Bytes& bytes) {
        carrier_.outgoing.push_back({.to = node(to), .bytes = bytes});
        turn();
    }
    void arrives(unsigned from, const wire::Envelope& envelope, const Bytes& content) {
        const auto front = wire::encode_envelope(envelope, content.size());
        Bytes datagram(front.begin(), front.end());
        datagram.insert(datagram.end(), content.begin(), content.end());
        port::LinkEvent event{.link = port::LinkId(100 + from),
                              .what = port::DatagramArrived{.bytes = std::move(datagram)}};
        EXPECT_TRUE(overlay_.take(now_, event));
        turn();
    }
    /// The envelopes that left over the link to this rank.
    std::vector<wire::Envelope> sent_to(unsigned rank) {
        std::vector<wire::Envelope> all;
        for (const Bytes& one : std::exchange(links_.at(rank)->relayed, {})) {
            all.push_back(wire::decode_envelope(one).value());
        }
        return all;
    }
    static wire::Envelope envelope(unsigned source, unsigned target, std::uint8_t hops,
                                   std::uint16_t choice = 0) {
        return {.source = Rank(source), .target = Rank(target), .hops = hops, .choice = choice};
    }

    TimePoint now_{10s};
    View view_{.epoch = Epoch(1)};
    std::map<unsigned, std::unique_ptr<FakeLink>> links_;
    BufferPool pool_{PoolProfile::training()};
    Engine engine_{{}, pool_};
    TunnelEnds carrier_;
    TrustingSigner signer_;
    Neighbourhood neighbourhood_;
    Overlay overlay_{{engine_, carrier_, signer_, neighbourhood_}};
};

/// Its neighbours are ranks 1 and 4.
class RingOverlay : public OverlayOfFive {
protected:
    RingOverlay() : OverlayOfFive(routing::Topology::k_regular(2), {1, 4}) {}
};

/// Its neighbours are all others.
class FullOverlay : public OverlayOfFive {
protected:
    FullOverlay() : OverlayOfFive(routing::Topology(), {1, 2, 3, 4}) {}

    /// The ranks over whose links packets left.
    std::vector<unsigned> ways_taken() {
        std::vector<unsigned> ranks;
        for (const unsigned rank : {1U, 2U, 3U, 4U}) {
            if (!sent_to(rank).empty()) ranks.push_back(rank);
        }
        return ranks;
    }
    /// Bytes of link states that others got.
    std::size_t told() {
        std::size_t bytes = 0;
        for (const unsigned rank : {2U, 3U, 4U}) {
            bytes += links_.at(rank)->written(port::Lane::control).size();
        }
        return bytes;
    }
};

TEST_F(RingOverlay, knows_the_neighbours_and_the_ways_to_all_others) {
    EXPECT_THAT(overlay_.neighbours().value(), ElementsAre(node(1), node(4)));
    EXPECT_TRUE(overlay_.is_neighbour(node(4)));
    EXPECT_FALSE(overlay_.is_neighbour(node(2)));
    ASSERT_TRUE(overlay_.way_to(Rank(2)));
    EXPECT_EQ(overlay_.way_to(Rank(2))->first, Rank(1));
    EXPECT_EQ(overlay_.way_to(Rank(2))->hops, 2U);
    EXPECT_FALSE(overlay_.way_to(Rank(0)));
}

TEST_F(RingOverlay, sends_packets_in_envelopes_to_the_nearest_relay) {
    send(2, packet(5));
    send(3, packet(6));
    ASSERT_EQ(links_.at(1)->relayed.size(), 1U);
    const auto seen = wire::decode_envelope(links_.at(1)->relayed.front()).value();
    EXPECT_EQ(seen.source, Rank(0));
    EXPECT_EQ(seen.target, Rank(2));
    EXPECT_TRUE(std::ranges::equal(seen.packet, packet(5)));
    EXPECT_EQ(sent_to(4).size(), 1U);
}

TEST_F(RingOverlay, loses_packets_for_itself_and_for_strangers) {
    send(0, packet(1));
    send(9, packet(2));
    EXPECT_THAT(sent_to(1), IsEmpty());
    EXPECT_THAT(sent_to(4), IsEmpty());
}

TEST_F(RingOverlay, gives_arriving_packets_to_the_carrier) {
    arrives(1, envelope(2, 0, 3), packet(9));
    EXPECT_THAT(carrier_.arrived, ElementsAre(std::pair(node(2), packet(9))));
}

TEST_F(RingOverlay, forwards_packets_of_others_with_one_hop_less) {
    arrives(1, envelope(1, 4, routing::kDefaultHops), packet(9));
    EXPECT_THAT(sent_to(4), ElementsAre(envelope(1, 4, routing::kDefaultHops - 1)));
    EXPECT_THAT(sent_to(1), IsEmpty());
    EXPECT_THAT(carrier_.arrived, IsEmpty());
}

TEST_F(RingOverlay, waits_while_a_link_takes_nothing) {
    links_.at(1)->busy = true;
    send(2, packet(5));
    EXPECT_THAT(sent_to(1), IsEmpty());
    links_.at(1)->busy = false;
    turn(1ms);
    EXPECT_EQ(sent_to(1).size(), 1U);
}

TEST_F(RingOverlay, drops_what_has_waited_too_long) {
    links_.at(1)->busy = true;
    send(2, packet(5));
    turn(1s);
    links_.at(1)->busy = false;
    turn();
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, goes_another_way_when_nothing_comes_back) {
    for (int i = 0; i < 10; ++i) {
        send(2, packet(5));
        now_ += 9ms;
    }
    EXPECT_EQ(sent_to(1).size(), 10U);
    EXPECT_THAT(sent_to(4), IsEmpty());
    now_ += 20ms;
    send(2, packet(5));
    EXPECT_THAT(sent_to(4), ElementsAre(::testing::Field(&wire::Envelope::choice, 1)));
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, keeps_its_way_while_answers_come) {
    for (int i = 0; i < 50; ++i) {
        send(2, packet(5));
        now_ += 50ms;
        arrives(1, envelope(2, 0, 3), packet(9));
    }
    EXPECT_EQ(sent_to(1).size(), 50U);
    EXPECT_THAT(sent_to(4), IsEmpty());
}

TEST_F(RingOverlay, does_not_take_a_pause_for_a_broken_way) {
    send(2, packet(5));
    now_ += 10s;
    send(2, packet(5));
    EXPECT_EQ(sent_to(1).size(), 2U);
}

TEST_F(RingOverlay, follows_the_other_end_to_another_way) {
    arrives(4, envelope(2, 0, 3, 1), packet(9));
    send(2, packet(5));
    EXPECT_EQ(sent_to(4).size(), 1U);
    arrives(1, envelope(2, 0, 3, 0), packet(9));
    send(2, packet(5));
    EXPECT_EQ(sent_to(4).size(), 1U) << "an older choice";
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, avoids_a_neighbour_whose_link_is_down_and_tells_the_other) {
    const std::size_t before = links_.at(4)->written(port::Lane::control).size();
    links_.at(1)->go_down(Error(Errc::timed_out, "no answer"));
    turn();
    send(2, packet(5));
    EXPECT_EQ(sent_to(4).size(), 1U);
    EXPECT_EQ(overlay_.way_to(Rank(2))->hops, 3U);
    EXPECT_EQ(overlay_.way_to(Rank(1))->hops, 4U) << "around the ring";
    EXPECT_GT(links_.at(4)->written(port::Lane::control).size(), before);
}

TEST_F(RingOverlay, avoids_a_neighbour_that_is_silent) {
    engine_.set_silent(node(1), true);
    turn();
    send(2, packet(5));
    EXPECT_EQ(sent_to(4).size(), 1U);
    engine_.set_silent(node(1), false);
    turn(1s);
    send(2, packet(5));
    EXPECT_EQ(sent_to(1).size(), 1U);
}

TEST_F(RingOverlay, never_relays_through_a_tunnel) {
    links_.at(1)->address = Address::tunnel(node(1).bytes());
    engine_.handle({.link = port::LinkId(101), .what = port::PathChanged{links_.at(1)->address}});
    turn();
    send(2, packet(5));
    send(1, packet(6));
    EXPECT_THAT(sent_to(1), IsEmpty());
    EXPECT_EQ(sent_to(4).size(), 2U);
}

TEST_F(RingOverlay, drops_what_should_cross_a_link_that_has_just_ended) {
    links_.at(4)->go_down(Error(Errc::timed_out, "no answer"));
    pump();
    links_.erase(4);
    arrives(1, envelope(1, 4, routing::kDefaultHops), packet(9));
    EXPECT_THAT(sent_to(1), IsEmpty());
}

TEST_F(RingOverlay, disconnects_a_neighbour_that_forges_the_source) {
    arrives(1, envelope(2, 0, routing::kDefaultHops), packet(9));
    EXPECT_THAT(carrier_.arrived, IsEmpty());
    EXPECT_FALSE(engine_.is_connected(node(1)));
    EXPECT_TRUE(engine_.is_connected(node(4)));
}

TEST_F(RingOverlay, ignores_envelopes_of_members_that_are_not_neighbours) {
    connect(2);
    arrives(2, envelope(2, 0, 3), packet(9));
    EXPECT_THAT(carrier_.arrived, IsEmpty());
    EXPECT_TRUE(engine_.is_connected(node(2)));
}

TEST_F(RingOverlay, follows_the_view) {
    View next = view_;
    next.epoch = Epoch(2);
    std::erase_if(next.members, [](const Member& one) { return one.rank == Rank(1); });
    engine_.set_view(next);
    engine_.evict(std::array{node(1)}, next.epoch);
    overlay_.adopt(now_, next, identity(0));
    EXPECT_THAT(overlay_.neighbours().value(), ElementsAre(node(2), node(4)));
    connect(2);
    turn();
    send(2, packet(5));
    EXPECT_EQ(sent_to(2).size(), 1U);
}

TEST_F(RingOverlay, has_nothing_to_do_while_nothing_happens) {
    turn(2s);
    EXPECT_FALSE(overlay_.turn(now_));
    EXPECT_EQ(overlay_.next_deadline(), std::nullopt);
}

TEST_F(FullOverlay, leaves_all_members_to_the_mesh) {
    EXPECT_TRUE(overlay_.complete());
    EXPECT_EQ(overlay_.neighbours(), std::nullopt);
    EXPECT_EQ(overlay_.way_to(Rank(3))->hops, 1U);
}

TEST_F(FullOverlay, does_nothing_before_its_first_view) {
    Overlay early({engine_, carrier_, signer_, neighbourhood_});
    EXPECT_FALSE(early.turn(now_));
    EXPECT_EQ(early.next_deadline(), std::nullopt);
}

TEST_F(FullOverlay, reaches_a_member_whose_link_is_silent_through_another_one) {
    engine_.set_silent(node(1), true);
    turn();
    send(1, packet(5));
    const auto first = ways_taken();
    EXPECT_THAT(first, ElementsAre(::testing::Ne(1U)));
    for (int i = 0; i < 3; ++i) send(1, packet(5));
    now_ += 101ms;
    EXPECT_EQ(ways_taken(), first);
    send(1, packet(5));
    const auto second = ways_taken();
    EXPECT_THAT(second, ElementsAre(::testing::Ne(1U)));
    EXPECT_NE(first, second) << "nothing came back";
    EXPECT_EQ(overlay_.way_to(Rank(1))->first, Rank(second.front()));
    EXPECT_EQ(overlay_.way_to(Rank(1))->hops, 2U);
}

TEST_F(FullOverlay, tells_the_others_of_a_link_that_has_failed_for_a_second) {
    const std::size_t before = told();
    engine_.set_silent(node(1), true);
    turn();
    turn(990ms);
    EXPECT_EQ(told(), before);
    ASSERT_TRUE(overlay_.next_deadline());
    EXPECT_EQ(*overlay_.next_deadline(), now_ + 10ms);
    turn(10ms);
    EXPECT_GT(told(), before);
    turn(1s);
    EXPECT_EQ(overlay_.next_deadline(), std::nullopt);
}

TEST_F(FullOverlay, tells_nobody_of_a_member_that_leaves_the_view_in_time) {
    const std::size_t before = told();
    engine_.set_silent(node(1), true);
    turn();
    turn(600ms);
    View next = view_;
    next.epoch = Epoch(2);
    std::erase_if(next.members, [](const Member& one) { return one.rank == Rank(1); });
    engine_.set_view(next);
    engine_.evict(std::array{node(1)}, next.epoch);
    overlay_.adopt(now_, next, identity(0));
    turn(5s);
    EXPECT_EQ(told(), before);
    EXPECT_EQ(overlay_.next_deadline(), std::nullopt);
}

TEST_F(FullOverlay, uses_a_link_again_that_works_again) {
    engine_.set_silent(node(1), true);
    turn();
    turn(2s);
    const std::size_t before = told();
    engine_.set_silent(node(1), false);
    turn(20ms);
    EXPECT_GT(told(), before) << "the others hear of it, too";
    EXPECT_EQ(overlay_.way_to(Rank(1))->hops, 1U);
    send(1, packet(5));
    EXPECT_THAT(ways_taken(), ElementsAre(1U));
}

}  // namespace
}  // namespace nexar::engine
