// Rings of whole nodes in which a relay forges envelopes, or in which tables are so wrong that
// envelopes turn in circles.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nexar/log.hpp>
#include <string>
#include <tuple>
#include <vector>

#include "routing/relay.hpp"
#include "sim/hostile_relay.hpp"
#include "sim/ring_cluster.hpp"
#include "support/seed.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

constexpr std::uint32_t kForger = 1;
constexpr std::uint32_t kVictim = 2;

std::vector<std::byte> forged(const wire::Envelope& envelope, std::span<const std::byte> packet) {
    const auto front = wire::encode_envelope(envelope, packet.size());
    std::vector<std::byte> datagram(front.begin(), front.end());
    datagram.insert(datagram.end(), packet.begin(), packet.end());
    return datagram;
}

class ForgingRing : public ::testing::Test {
protected:
    ForgingRing() {
        set_log_level(LogLevel::off);
        formed_ = cluster_.form();
    }

    /// The forger sends its neighbour an envelope that claims to have come from `source`.
    void forge(std::uint32_t source, std::uint8_t hops, std::span<const std::byte> packet) {
        port::Link* const link = cluster_.link(kForger, kVictim);
        ASSERT_NE(link, nullptr);
        EXPECT_TRUE(link->send_relayed(forged({.source = Rank(source),
                                               .target = Rank(kVictim),
                                               .hops = hops,
                                               .choice = 1,
                                               .number = 5},
                                              packet)));
        cluster_.poke(kForger);
    }

    std::uint64_t seed_ = test_seed(42);
    RingCluster cluster_{seed_, 5};
    bool formed_ = false;
};

TEST_F(ForgingRing, a_neighbour_refuses_a_source_that_cannot_be_true_and_disconnects) {
    ASSERT_TRUE(formed_);
    std::vector<std::string> reasons;
    cluster_.node(kForger).host().event_tap = [&](port::LinkEvent& event) {
        if (const auto* down = std::get_if<port::Down>(&event.what)) {
            reasons.push_back(down->reason.cause());
        }
        return true;
    };
    const port::Link* const before = cluster_.link(kVictim, kForger);
    const auto packet = pattern(9, 300);
    forge(4, routing::kDefaultHops, packet);
    EXPECT_TRUE(cluster_.run_until([&] { return !reasons.empty(); }, 1s));
    EXPECT_NE(cluster_.link(kVictim, kForger), before);
    EXPECT_THAT(reasons, ::testing::Contains(HasSubstr("forged source")));
    cluster_.node(kForger).host().event_tap = {};
    // The others need neither the forger nor its link.
    for (std::size_t i = 0; i < 10; ++i) {
        cluster_.send(0, kVictim, 1 + i * 3000);
        cluster_.send(kVictim, 4, 1 + i * 3000);
    }
    EXPECT_TRUE(cluster_.run_until_ended(5s));
    EXPECT_TRUE(cluster_.all_arrived());
    cluster_.run_until([] { return false; }, 3s);
    EXPECT_TRUE(cluster_.is_whole());
    EXPECT_EQ(cluster_.link(kVictim, kForger), nullptr);
}

TEST_F(ForgingRing, packets_that_no_neighbour_can_recognise_as_forged_reach_nobody) {
    ASSERT_TRUE(formed_);
    std::vector<std::vector<std::byte>> seen;  // packets of ranks 0 and 2
    cluster_.node(kForger).host().event_tap = [&](port::LinkEvent& event) {
        if (const auto envelope = relayed_envelope(event, kForger)) {
            seen.emplace_back(envelope->packet.begin(), envelope->packet.end());
        }
        return true;
    };
    for (std::size_t i = 0; i < 20; ++i) {
        cluster_.send(0, kVictim, 1 + i * 3000);
        cluster_.send(4, kVictim, 1 + i * 2000);
        cluster_.send(kVictim, 4, 7 + i * 2000);
    }
    Random random(seed_);
    std::size_t sent = 0;
    const auto all_ended = [&] { return cluster_.run_until_ended(1ms); };
    for (int i = 0; i < 300; ++i) {
        const bool ended = all_ended();
        if (ended && sent > 200) break;
        // Packets of another pair, and bytes that no connection ever sent.
        const auto noise = pattern(random.next(), 50 + random.below(1000));
        const bool real = !seen.empty() && random.chance(0.5);
        ASSERT_NO_FATAL_FAILURE(
            forge(4, routing::kDefaultHops - 1, real ? seen[random.below(seen.size())] : noise));
        ++sent;
    }
    EXPECT_TRUE(cluster_.run_until_ended(10s));
    EXPECT_TRUE(cluster_.all_arrived());
    EXPECT_GT(sent, 200U);
    EXPECT_FALSE(seen.empty());
    cluster_.run_until([] { return false; }, 1s);
    EXPECT_TRUE(cluster_.is_whole());
    EXPECT_NE(cluster_.link(kVictim, kForger), nullptr) << "nobody can tell who forged them";
    cluster_.node(kForger).host().event_tap = {};
}

/// A node that takes all that its neighbour `partner` relays to it for something that comes from
/// its other neighbour, and so sends it back: as if each of the two thought that the other one is
/// nearer to every target.
class WrongTable {
public:
    /// Each datagram of an envelope: its source, number and part.
    using Key = std::tuple<Rank, std::uint32_t, std::uint8_t>;
    using Crossed = std::map<Key, std::vector<std::uint8_t>>;  // the hops at each crossing

    WrongTable(RingCluster& cluster, std::uint32_t rank, std::uint32_t partner, Crossed& crossed)
        : cluster_(&cluster), rank_(rank), partner_(partner), crossed_(&crossed) {
        cluster.node(rank).host().event_tap = [this](port::LinkEvent& event) {
            mislead(event);
            return true;
        };
    }
    ~WrongTable() { cluster_->node(rank_).host().event_tap = {}; }
    WrongTable(const WrongTable&) = delete;
    WrongTable& operator=(const WrongTable&) = delete;

private:
    void mislead(port::LinkEvent& event) {
        const auto envelope = relayed_envelope(event, rank_);
        if (!envelope) return;
        (*crossed_)[{envelope->source, envelope->number, envelope->part}].push_back(envelope->hops);
        const port::Link* const partner = cluster_->link(rank_, partner_);
        if (partner == nullptr || partner->id() != event.link) return;
        const std::uint32_t other =
            partner_ == cluster_->after(rank_) ? cluster_->before(rank_) : cluster_->after(rank_);
        if (const port::Link* const link = cluster_->link(rank_, other)) event.link = link->id();
    }

    RingCluster* cluster_;
    std::uint32_t rank_;
    std::uint32_t partner_;
    Crossed* crossed_;
};

TEST(WrongTables, envelopes_in_a_circle_end_after_the_hop_limit_and_the_pair_takes_another_way) {
    set_log_level(LogLevel::off);
    RingCluster cluster(test_seed(43), 7);
    ASSERT_TRUE(cluster.form());
    WrongTable::Crossed crossed;
    const WrongTable first(cluster, 1, 2, crossed);
    const WrongTable second(cluster, 2, 1, crossed);
    const TimePoint began = cluster.world().now();
    for (std::size_t i = 0; i < 15; ++i) {
        cluster.send(0, 3, 1 + i * 700);
        cluster.send(3, 0, 9 + i * 500);
    }
    EXPECT_TRUE(cluster.run_until_ended(5s));
    EXPECT_TRUE(cluster.all_arrived());
    const auto took = cluster.world().now() - began;
    cluster.run_until([] { return false; }, 1s);
    EXPECT_TRUE(cluster.is_whole());
    std::size_t to_the_end = 0;
    for (const auto& [key, hops] : crossed) {
        EXPECT_LE(hops.size(), routing::kDefaultHops);
        EXPECT_TRUE(std::ranges::is_sorted(hops, std::ranges::greater{}));
        if (hops.size() == routing::kDefaultHops && hops.back() == 1) ++to_the_end;
    }
    EXPECT_GT(to_the_end, 0U);
    EXPECT_EQ(to_the_end, crossed.size()) << "some ended before";
    std::printf("%zu envelopes crossed %u links each; the messages arrived after %.3f s\n",
                to_the_end, unsigned{routing::kDefaultHops},
                std::chrono::duration<double>(took).count());
}

}  // namespace
}  // namespace nexar::testing
