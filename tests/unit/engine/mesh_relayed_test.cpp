// Three nodes with engines and meshes on real QUIC connections over simulated datagrams. What two
// of them exchange in a tunnel travels in relayed datagrams of their links with the third, which
// this test forwards by hand.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/assert.hpp"
#include "support/exchange.hpp"
#include "unit/engine/relayed_node.hpp"

namespace nexar::engine {
namespace {

using namespace std::chrono_literals;
using nexar::testing::Exchange;

class RelayedMesh : public ::testing::Test {
protected:
    RelayedMesh() {
        net_.weather = {.delay = 200us};
        for (std::uint32_t rank = 0; rank < 3; ++rank) {
            view_.members.push_back({.node = QuicPair::node(rank + 1)->identity().node,
                                     .incarnation = Incarnation(1),
                                     .rank = Rank(rank),
                                     .addresses = {sim::DatagramNet::address(rank + 1)}});
        }
        for (std::uint32_t rank = 0; rank < 3; ++rank) {
            nodes_[rank] = std::make_unique<RelayedNode>(net_, rank, view_);
        }
        net_.tap = [this](const sim::Datagram& one) {
            const Address a = view_.members[0].addresses[0];
            const Address b = view_.members[1].addresses[0];
            if ((one.from == a && one.to == b) || (one.from == b && one.to == a)) ++between_;
            return true;
        };
    }
    ~RelayedMesh() override {
        for (const auto& node : nodes_) node->close();
        const bool ended = run_until(
            [&] {
                return std::ranges::all_of(nodes_, [](const auto& one) { return one->idle(); });
            },
            60s);
        NEXAR_ASSERT(ended, "closed nodes must become idle");
    }

    /// Everybody adopts the next view. All are neighbours, or 0 and 1 are not.
    void adopt(bool all) {
        view_.epoch = Epoch(view_.epoch.value() + 1);
        nodes_[0]->adopt(view_, all ? std::vector{1U, kRelay} : std::vector{kRelay});
        nodes_[1]->adopt(view_, all ? std::vector{0U, kRelay} : std::vector{kRelay});
        nodes_[2]->adopt(view_, {0, 1});
    }
    /// Waits for the links, and until they know how wide their paths are.
    void form(bool all) {
        adopt(all);
        ASSERT_TRUE(run_until(
            [&] {
                return std::ranges::all_of(nodes_,
                                           [](auto& one) { return one->mesh().complete(); });
            },
            10s));
        world_.run_for(2s);
    }
    Exchange& send(std::uint32_t from, std::uint32_t to, std::size_t bytes) {
        Exchange& message =
            *messages_.emplace_back(std::make_unique<Exchange>(messages_.size() + 1, bytes));
        message.receive.pattern = {.source = Rank(from), .tag = Tag(messages_.size())};
        message.send.to = Rank(to);
        message.send.tag = Tag(messages_.size());
        nodes_[to]->start(message.receive);
        nodes_[from]->start(message.send);
        return message;
    }
    bool run_until(const std::function<bool()>& done, Duration at_most) {
        return world_.run_until(done, at_most);
    }
    bool both_in_tunnel() { return nodes_[0]->in_tunnel(1) && nodes_[1]->in_tunnel(0); }
    bool both_direct() {
        return nodes_[0]->is_connected(1) && nodes_[1]->is_connected(0) &&
               !nodes_[0]->in_tunnel(1) && !nodes_[1]->in_tunnel(0);
    }
    std::size_t lost_links() {
        std::size_t all = 0;
        for (const auto& node : nodes_) all += node->lost_links();
        return all;
    }

    sim::World world_{7};
    sim::DatagramNet net_{world_};
    View view_{};
    std::array<std::unique_ptr<RelayedNode>, 3> nodes_{};
    std::vector<std::unique_ptr<Exchange>> messages_;
    std::size_t between_ = 0;  // datagrams sent directly between 0 and 1
};

TEST_F(RelayedMesh, a_transfer_goes_on_through_a_relay_while_the_direct_path_is_cut) {
    ASSERT_NO_FATAL_FAILURE(form(true));
    ASSERT_TRUE(both_direct());
    const Exchange& message = send(0, 1, 30'000'000);
    const Exchange& back = send(1, 0, 2'000'000);
    world_.run_for(2ms);
    ASSERT_FALSE(message.arrived());
    net_.partition(nodes_[0]->host(), nodes_[1]->host());
    ASSERT_TRUE(run_until([&] { return both_in_tunnel(); }, 1s));
    ASSERT_TRUE(run_until([&] { return message.arrived() && back.arrived(); }, 20s));
    EXPECT_GT(nodes_[2]->forwarded(), 100U);

    world_.run_for(5s);
    EXPECT_TRUE(both_in_tunnel()) << "the path is still cut";
    net_.heal_all();
    ASSERT_TRUE(run_until([&] { return both_direct(); }, 31s));
    world_.run_for(1s);
    const std::size_t forwarded = nodes_[2]->forwarded();
    const Exchange& after = send(0, 1, 3'000'000);
    ASSERT_TRUE(run_until([&] { return after.arrived(); }, 1s));
    EXPECT_EQ(nodes_[2]->forwarded(), forwarded);
    EXPECT_EQ(lost_links(), 0U) << "one connection carried everything";
}

TEST_F(RelayedMesh, members_that_are_not_neighbours_exchange_messages_through_the_relay_only) {
    ASSERT_NO_FATAL_FAILURE(form(false));
    EXPECT_FALSE(nodes_[0]->is_connected(1));
    EXPECT_EQ(nodes_[2]->forwarded(), 0U) << "tunnels open on first use";
    const Exchange& there = send(0, 1, 3'000'000);
    const Exchange& back = send(1, 0, 2'000'000);
    ASSERT_TRUE(run_until([&] { return there.arrived() && back.arrived(); }, 20s));
    EXPECT_TRUE(both_in_tunnel());
    world_.run_for(60s);
    EXPECT_TRUE(both_in_tunnel());
    EXPECT_EQ(between_, 0U);
}

TEST_F(RelayedMesh, a_link_follows_the_topology_in_the_middle_of_a_transfer) {
    ASSERT_NO_FATAL_FAILURE(form(false));
    const Exchange& first = send(0, 1, 1000);
    ASSERT_TRUE(run_until([&] { return first.arrived(); }, 20s));
    world_.run_for(1s);
    const Exchange& large = send(0, 1, 60'000'000);
    world_.run_for(20ms);
    adopt(true);
    ASSERT_TRUE(run_until([&] { return both_direct(); }, 1s));
    adopt(false);
    ASSERT_TRUE(run_until([&] { return both_in_tunnel(); }, 1s));
    EXPECT_FALSE(large.arrived());
    adopt(true);
    ASSERT_TRUE(run_until([&] { return large.arrived(); }, 20s));
    EXPECT_TRUE(both_direct());
    // Both may have dialed the tunnel.
    EXPECT_EQ(lost_links(), 0U);
}

TEST_F(RelayedMesh, the_side_that_accepted_the_link_asks_the_other_one_to_move_it) {
    ASSERT_NO_FATAL_FAILURE(form(true));
    const bool first_dialed = nodes_[0]->report(1).dialed;
    RelayedNode& dialer = first_dialed ? *nodes_[0] : *nodes_[1];
    RelayedNode& acceptor = first_dialed ? *nodes_[1] : *nodes_[0];
    net_.partition(dialer.host(), acceptor.host(), sim::Way::one);
    ASSERT_TRUE(run_until([&] { return both_in_tunnel(); }, 1s));
    EXPECT_EQ(dialer.requests(), 1U);
    EXPECT_EQ(acceptor.requests(), 0U);
    const Exchange& message = send(0, 1, 1'000'000);
    ASSERT_TRUE(run_until([&] { return message.arrived(); }, 5s));
    net_.heal_all();
    ASSERT_TRUE(run_until([&] { return both_direct(); }, 31s));
    EXPECT_EQ(lost_links(), 0U);
}

}  // namespace
}  // namespace nexar::engine
