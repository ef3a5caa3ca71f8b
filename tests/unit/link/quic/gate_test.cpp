#include "link/quic/gate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <fmt/format.h>

namespace nexar::quic {
namespace {

using namespace std::chrono_literals;
using Verdict = Gate::Verdict;

constexpr TimePoint kStart{1000s};

Address host(unsigned network, unsigned index = 1) {
    return Address::parse(fmt::format("10.{}.{}.{}:99", network / 256, network % 256, index))
        .value();
}

TEST(Gate, asks_for_proof_when_many_handshakes_are_half_open) {
    Gate gate({.half_open_before_retry = 3, .new_per_second_before_retry = 1e6}, 1);
    for (std::uint64_t i = 0; i < 3; ++i) {
        EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::accept);
        gate.opened(kStart, port::LinkId(i), host(1));
    }
    EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::retry);
    EXPECT_EQ(gate.judge(kStart, host(1), true), Verdict::accept);
    gate.closed(port::LinkId(1));
    EXPECT_EQ(gate.half_open(), 2U);
    EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::accept);
}

TEST(Gate, asks_for_proof_when_many_handshakes_are_new) {
    Gate gate({.new_per_second_before_retry = 10}, 1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::accept);
    EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::retry);
    EXPECT_EQ(gate.judge(kStart + 150ms, host(2), false), Verdict::accept);
}

/// A gate with handshakes that began one millisecond apart.
class FullGate : public ::testing::Test {
protected:
    void open(const Address& from) {
        while (const auto link = gate_.in_the_way(now_, from)) {
            evicted_.push_back(*link);
            gate_.closed(*link);
        }
        if (gate_.full(from)) return;
        gate_.opened(now_, port::LinkId(next_++), from);
        now_ += 1ms;
    }
    /// The number of the next handshake.
    std::uint64_t next() const noexcept { return next_; }

    Gate gate_{{.half_open = 256, .half_open_per_address = 48, .half_open_per_network = 96}, 1};
    TimePoint now_ = kStart;
    std::uint64_t next_ = 0;
    std::vector<port::LinkId> evicted_;
};

TEST_F(FullGate, nobody_makes_room_while_slots_are_free) {
    for (unsigned i = 0; i < 192; ++i) open(host(1));
    EXPECT_TRUE(evicted_.empty());
    EXPECT_EQ(gate_.half_open(), 192U);
}

TEST_F(FullGate, the_oldest_handshake_of_the_busiest_address_makes_room) {
    open(host(1, 1));
    for (unsigned i = 0; i < 30; ++i) open(host(2, i));
    const std::uint64_t first_of_flood = next();
    while (gate_.half_open() < 192) open(host(3, 7));
    open(host(4));
    open(host(1, 2));
    EXPECT_EQ(evicted_,
              (std::vector{port::LinkId(first_of_flood), port::LinkId(first_of_flood + 1)}));
    EXPECT_EQ(gate_.half_open(), 192U);
}

TEST_F(FullGate, an_honest_port_keeps_its_slot_when_another_port_of_its_address_is_busy) {
    open(host(3, 7).with_port(1000));
    for (unsigned i = 0; i < 500; ++i) open(host(3, 7).with_port(2000));
    EXPECT_EQ(evicted_.size(), 500U + 1U - 192U);
    EXPECT_EQ(std::ranges::count(evicted_, port::LinkId(0)), 0);
}

TEST_F(FullGate, the_oldest_of_the_busiest_network_makes_room_when_no_address_is_busy) {
    open(host(1));
    for (unsigned i = 0; i < 191; ++i) open(host(9, i));
    open(host(2));
    EXPECT_EQ(evicted_, std::vector{port::LinkId(1)});
}

TEST_F(FullGate, the_oldest_of_all_makes_room_when_no_network_is_busy_either) {
    for (unsigned i = 0; i < 192; ++i) open(host(i));
    open(host(500));
    EXPECT_EQ(evicted_, std::vector{port::LinkId(0)});
}

TEST_F(FullGate, strangers_get_one_second_when_half_of_the_slots_are_taken) {
    for (unsigned i = 0; i < 127; ++i) open(host(i));
    now_ += 2s;
    open(host(500));
    EXPECT_TRUE(evicted_.empty());
    open(host(501));
    EXPECT_EQ(evicted_.size(), 1U) << "then a slot is free";
}

TEST_F(FullGate, a_quarter_of_the_slots_is_reserved_for_members) {
    std::vector<Address> members;
    for (unsigned i = 0; i < 300; ++i)
        members.push_back(host(3, 7).with_port(static_cast<std::uint16_t>(3000 + i)));
    gate_.set_members(members);
    for (unsigned i = 0; i < 400; ++i) open(host(3, 7).with_port(2000));
    evicted_.clear();
    for (unsigned i = 0; i < 64; ++i) open(members[i]);
    EXPECT_TRUE(evicted_.empty());
    EXPECT_EQ(gate_.half_open(), 256U);
    for (unsigned i = 64; i < 300; ++i) open(members[i]);
    EXPECT_EQ(evicted_.size(), 192U) << "strangers make room for members";
    EXPECT_EQ(gate_.half_open(), 256U);
    evicted_.clear();
    open(host(1));
    EXPECT_TRUE(evicted_.empty()) << "members make room for nobody";
    EXPECT_TRUE(gate_.full(host(1)));
}

TEST(Gate, limits_the_rate_of_a_port_and_of_an_address_only_under_pressure) {
    Gate gate({.half_open_before_retry = 1}, 3);
    int accepted = 0;
    const auto begin = [&](const Address& from) {
        accepted += gate.judge(kStart, from, true) == Verdict::accept ? 1 : 0;
    };
    for (int i = 0; i < 100; ++i) begin(host(1));
    EXPECT_EQ(accepted, 100);
    gate.opened(kStart, port::LinkId(1), host(9));
    int bounded = 0;  // a few may share a bucket with others
    for (unsigned network = 100; network < 120; ++network) {
        accepted = 0;
        for (int i = 0; i < 40; ++i) begin(host(network));
        bounded += accepted == 32 ? 1 : 0;
        begin(host(network).with_port(7));
    }
    EXPECT_GE(bounded, 18);
}

TEST(Gate, a_flood_of_one_address_leaves_capacity_for_its_network) {
    Gate gate({.half_open_before_retry = 0}, 3);
    int others = 0;
    // 600 per second from new ports; ten per second from other addresses of the network.
    for (int i = 0; i < 6000; ++i) {
        const TimePoint now = kStart + i * 1s / 600;
        (void)gate.judge(now, host(1, 7).with_port(static_cast<std::uint16_t>(1000 + i)), true);
        if (i % 60 != 0) continue;
        const Address honest = host(1, 8 + static_cast<unsigned>(i / 60));
        if (gate.judge(now, honest, true) == Verdict::accept) ++others;
    }
    EXPECT_GE(others, 98) << "only a few share a bucket with the flood";
}

TEST(Gate, a_member_is_admitted_however_busy_its_address_is) {
    Gate gate({.half_open_before_retry = 0}, 3);
    const Address member = host(1, 7).with_port(999);
    gate.set_members(std::span(&member, 1));
    for (int i = 0; i < 6000; ++i) {
        const TimePoint now = kStart + i * 1s / 6000;
        (void)gate.judge(now, host(1, 7).with_port(static_cast<std::uint16_t>(1000 + i)), true);
        if (i % 60 != 0) continue;
        EXPECT_EQ(gate.judge(now, member, true), Verdict::accept);
    }
}

TEST(Gate, counts_clients_with_a_proven_address_by_network) {
    Gate gate({.per_network_per_second = 1, .per_network_burst = 4}, 7);
    for (unsigned i = 0; i < 4; ++i) {
        EXPECT_EQ(gate.judge(kStart, host(5, i), true), Verdict::accept);
    }
    EXPECT_EQ(gate.judge(kStart, host(5, 77), true), Verdict::drop);
    unsigned others = 0;
    for (unsigned network = 1000; network < 1100; ++network) {
        if (gate.judge(kStart, host(network), true) == Verdict::accept) ++others;
    }
    EXPECT_GE(others, 95U) << "only a few share a bucket";
    EXPECT_EQ(gate.judge(kStart + 1100ms, host(5, 9), true), Verdict::accept);
}

TEST(Gate, which_networks_share_a_bucket_depends_on_the_seed) {
    const auto neighbours = [](std::uint64_t seed) {
        std::vector<unsigned> same;
        for (unsigned network = 1; network < 4000; ++network) {
            Gate gate({.per_network_per_second = 0.001, .per_network_burst = 1}, seed);
            (void)gate.judge(kStart, host(0), true);
            if (gate.judge(kStart, host(network), true) == Verdict::drop) same.push_back(network);
        }
        return same;
    };
    EXPECT_NE(neighbours(1), neighbours(2));
}

TEST(Gate, answers_within_its_budget) {
    Gate gate({.replies_per_second = 1000}, 1);
    int answers = 0;
    for (int i = 0; i < 2000; ++i) {
        if (gate.may_reply(kStart + i * 1ms / 20)) ++answers;
    }
    EXPECT_GE(answers, 100);
    EXPECT_LE(answers, 111);
}

}  // namespace
}  // namespace nexar::quic
