#include "link/quic/gate.hpp"

#include <gtest/gtest.h>

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

TEST(Gate, asks_for_proof_when_many_are_half_open) {
    Gate gate({.half_open_before_retry = 3, .new_per_second_before_retry = 1e6}, 1);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::accept);
        gate.opened();
    }
    EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::retry);
    EXPECT_EQ(gate.judge(kStart, host(1), true), Verdict::accept);
    gate.closed();
    EXPECT_EQ(gate.half_open(), 2U);
    EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::accept);
}

TEST(Gate, asks_for_proof_when_many_are_new) {
    Gate gate({.new_per_second_before_retry = 10}, 1);
    for (int i = 0; i < 10; ++i) EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::accept);
    EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::retry);
    EXPECT_EQ(gate.judge(kStart + 150ms, host(2), false), Verdict::accept);
}

TEST(Gate, lets_nobody_in_when_the_house_is_full) {
    Gate gate({.half_open_before_retry = 1, .half_open = 2}, 1);
    gate.opened();
    gate.opened();
    EXPECT_EQ(gate.judge(kStart, host(1), false), Verdict::drop);
    EXPECT_EQ(gate.judge(kStart, host(1), true), Verdict::drop);
}

TEST(Gate, counts_proven_ones_by_their_network) {
    Gate gate({.per_network_per_second = 1, .per_network_burst = 4}, 7);
    for (unsigned i = 0; i < 4; ++i) {
        EXPECT_EQ(gate.judge(kStart, host(5, i), true), Verdict::accept);
    }
    EXPECT_EQ(gate.judge(kStart, host(5, 77), true), Verdict::drop);
    unsigned others = 0;
    for (unsigned network = 1000; network < 1100; ++network) {
        if (gate.judge(kStart, host(network), true) == Verdict::accept) ++others;
    }
    EXPECT_GE(others, 95U) << "few share a bucket";
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
