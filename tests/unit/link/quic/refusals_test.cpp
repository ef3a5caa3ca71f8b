#include "link/quic/refusals.hpp"

#include <gtest/gtest.h>

namespace nexar::quic {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kFirstRefusal{1000s};

/// Sends a probe whenever one is due, and lets the host refuse it; returns when the peer is dead.
std::optional<Duration> dies_after(Refusals& refusals, Duration at_most) {
    refusals.refused(kFirstRefusal, true);
    for (TimePoint now = kFirstRefusal; now < kFirstRefusal + at_most; now += 10ms) {
        if (refusals.dead(now)) return now - kFirstRefusal;
        if (!refusals.due() || now < *refusals.due()) continue;
        refusals.probed(now);
        refusals.refused(now, true);
    }
    return std::nullopt;
}

TEST(Refusals, a_peer_whose_probes_are_all_refused_is_dead_within_a_second) {
    Refusals refusals;
    const auto took = dies_after(refusals, 10s);
    ASSERT_TRUE(took);
    EXPECT_GE(*took, Refusals::kPatience);
    EXPECT_LT(*took, 1s);
}

TEST(Refusals, a_single_refusal_does_not_count_as_death) {
    Refusals refusals;
    refusals.refused(kFirstRefusal, true);
    ASSERT_TRUE(refusals.due());
    TimePoint now = kFirstRefusal;
    for (; refusals.due() && now < kFirstRefusal + 1min; now += 10ms) {
        EXPECT_FALSE(refusals.dead(now));
        if (now >= *refusals.due()) refusals.probed(now);
    }
    EXPECT_FALSE(refusals.suspects()) << "the probes end when no further refusal arrives";
    EXPECT_LT(now - kFirstRefusal, 3s);
}

TEST(Refusals, a_short_burst_of_five_does_not_count_as_death) {
    Refusals refusals;
    for (int i = 0; i < 5; ++i) refusals.refused(kFirstRefusal + i * 1ms, true);
    EXPECT_FALSE(refusals.dead(kFirstRefusal + 10s));
}

TEST(Refusals, a_full_burst_of_refusals_followed_by_silence_is_enough) {
    Refusals refusals;
    for (int i = 0; i < 6; ++i) refusals.refused(kFirstRefusal + i * 1us, true);
    EXPECT_FALSE(refusals.dead(kFirstRefusal + 499ms));
    EXPECT_TRUE(refusals.dead(kFirstRefusal + 500ms));
}

TEST(Refusals, a_peer_that_answers_lives_however_often_it_is_refused) {
    Refusals refusals;
    for (TimePoint now = kFirstRefusal; now < kFirstRefusal + 10s; now += 10ms) {
        for (int i = 0; i < 7; ++i) refusals.refused(now, true);
        ASSERT_FALSE(refusals.dead(now)) << (now - kFirstRefusal) / 1ms;
        if (refusals.due() && now >= *refusals.due()) {
            refusals.probed(now);
            refusals.heard();
        }
    }
}

TEST(Refusals, refusals_without_a_quote_only_start_a_probe) {
    Refusals refusals;
    int probes = 0;
    for (TimePoint now = kFirstRefusal; now < kFirstRefusal + 10s; now += 10ms) {
        refusals.refused(now, false);
        ASSERT_FALSE(refusals.dead(now));
        if (refusals.due() && now >= *refusals.due()) {
            refusals.probed(now);
            ++probes;
        }
    }
    EXPECT_GT(probes, 0);
}

TEST(Refusals, two_refusals_in_a_row_are_enough_for_a_link_that_is_being_closed) {
    Refusals refusals;
    EXPECT_FALSE(refusals.dead_at_if_closing(5ms));
    refusals.refused(kFirstRefusal, true);
    EXPECT_FALSE(refusals.dead_at_if_closing(5ms));
    refusals.refused(kFirstRefusal + 1ms, false);
    EXPECT_FALSE(refusals.dead_at_if_closing(5ms)) << "without a quote it counts for nothing";
    refusals.refused(kFirstRefusal + 2ms, true);
    EXPECT_EQ(refusals.dead_at_if_closing(5ms), kFirstRefusal + 5ms);
    refusals.heard();
    EXPECT_FALSE(refusals.dead_at_if_closing(5ms));
}

TEST(Refusals, the_first_refusal_of_a_link_that_is_being_closed_starts_a_probe_at_once) {
    Refusals refusals;
    refusals.refused(kFirstRefusal, true, true);
    refusals.probed(kFirstRefusal);
    refusals.refused(kFirstRefusal + 1ms, true, true);
    EXPECT_EQ(refusals.due(), kFirstRefusal + Refusals::kProbeEvery);
    refusals.heard();
    refusals.refused(kFirstRefusal + 2ms, true, true);
    EXPECT_EQ(refusals.due(), kFirstRefusal + 2ms) << "the peer may have died since its answer";
}

TEST(Refusals, one_more_probe_follows_after_a_packet_of_the_peer) {
    Refusals refusals;
    refusals.refused(kFirstRefusal, true);
    refusals.probed(kFirstRefusal);
    refusals.heard();  // it may have been sent before the peer died
    ASSERT_TRUE(refusals.due());
    refusals.probed(*refusals.due());
    EXPECT_FALSE(refusals.suspects());
}

}  // namespace
}  // namespace nexar::quic
