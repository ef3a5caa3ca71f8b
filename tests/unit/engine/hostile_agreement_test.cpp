// Agreements with a peer that breaks the rules.

#include <gmock/gmock.h>

#include <string>
#include <vector>

#include "agreeing_ranks.hpp"
#include "wire/limits.hpp"

namespace nexar::engine {
namespace {

using ::testing::HasSubstr;

/// Frames of a peer that breaks the rules.
class HostilePeer : public ::testing::Test {
protected:
    static wire::Agreement state(ContextId context, std::uint64_t number) {
        wire::Agreement frame{.context = context, .number = number, .epoch = Epoch(1)};
        frame.call.push_back({.fingerprint = 9});
        return frame;
    }
    void expect_violation(const wire::Agreement& frame, const std::string& words) {
        const auto handled = ranks_.at(0).handle(ranks_.nodes[1], frame);
        ASSERT_FALSE(handled);
        EXPECT_EQ(handled.error().code(), Errc::protocol_violation);
        EXPECT_THAT(handled.error().cause(), HasSubstr(words));
        EXPECT_EQ(ranks_.at(0).kept_frames(), 0U);
    }

    Ranks ranks_{3};
};

TEST_F(HostilePeer, is_disconnected_for_ranks_that_do_not_exist) {
    wire::Agreement frame = state(kContext, 0);
    frame.call.front().excluded = {Rank(3)};
    expect_violation(frame, "rank 1 excludes an unknown rank");
    frame.call.front().excluded = {Rank(1)};
    expect_violation(frame, "rank 1 excludes itself");
    frame = state(kContext, 0);
    frame.value.push_back({.fingerprint = 9, .lost = {Rank(4)}});
    expect_violation(frame, "rank 1 reports an unknown rank as lost");
    frame.value.front() = {.fingerprint = 8};
    expect_violation(frame, "rank 1 stored the value of another call");
    expect_violation(
        {.step = wire::AgreementStep::waiting, .context = kContext, .missing = {Rank(3)}},
        "rank 1 waits for an unknown rank");
}

TEST_F(HostilePeer, is_disconnected_for_a_communicator_of_others) {
    const std::vector<NodeId> others{ranks_.nodes[0], ranks_.nodes[2]};
    ranks_.at(0).add(ContextId(6), others, Rank(0));
    expect_violation(state(ContextId(6), 0), "0000000000000006, of which it is not a member");
}

TEST_F(HostilePeer, cannot_make_this_rank_keep_more_than_the_limits) {
    for (std::uint64_t number = 0; number < 1000; ++number) {
        EXPECT_TRUE(ranks_.at(0).handle(ranks_.nodes[1], state(kContext, number)));
    }
    EXPECT_EQ(ranks_.at(0).kept_frames(), Agreements::kMaxUndecided);
    for (std::uint64_t id = 100; id < 1000; ++id) {
        EXPECT_TRUE(ranks_.at(0).handle(ranks_.nodes[1], state(ContextId(id), 0)));
    }
    EXPECT_EQ(ranks_.at(0).kept_frames(), Agreements::kMaxUndecided + Agreements::kMaxEarly);
    // Other steps, and frames of strangers, leave nothing behind.
    for (const auto step : {wire::AgreementStep::proposal, wire::AgreementStep::stored,
                            wire::AgreementStep::decision, wire::AgreementStep::question}) {
        wire::Agreement frame{.step = step, .context = ContextId(7), .epoch = Epoch(1)};
        frame.value.emplace_back();
        EXPECT_TRUE(ranks_.at(0).handle(ranks_.nodes[1], frame));
        frame.context = kContext;
        EXPECT_TRUE(ranks_.at(0).handle(ranks_.nodes[1], frame));
    }
    EXPECT_TRUE(ranks_.at(0).handle(node_at(9), state(ContextId(8), 0)));
    EXPECT_EQ(ranks_.at(0).kept_frames(), Agreements::kMaxUndecided + Agreements::kMaxEarly);
    ranks_.at(0).set_view(ranks_.view(2, {1}));
    EXPECT_EQ(ranks_.at(0).kept_frames(), 0U);
}

TEST_F(HostilePeer, keeps_large_frames_only_within_its_share) {
    wire::Agreement large = state(ContextId(100), 0);
    for (std::uint32_t i = 0; i < wire::kMaxViewMembers; ++i) {
        if (i != 1) large.call.front().excluded.emplace_back(i);
    }
    for (std::uint64_t id = 100; id < 200; ++id) {
        large.context = ContextId(id);
        EXPECT_TRUE(ranks_.at(0).handle(ranks_.nodes[1], large));
    }
    EXPECT_LE(ranks_.at(0).kept_frames(), 4U) << "64 KiB each";
}

}  // namespace
}  // namespace nexar::engine
