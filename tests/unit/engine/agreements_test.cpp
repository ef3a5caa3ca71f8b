#include "engine/agreements.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <deque>
#include <string>

#include "agreeing_ranks.hpp"

// tests/sim/agreement_model_test.cpp shows that ranks agree whatever fails.
namespace nexar::engine {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

TEST(Agreements, returns_what_all_ranks_have_in_common) {
    Ranks ranks(3);
    std::array<AgreeOperation, 3> calls;
    for (std::uint32_t i = 0; i < 3; ++i) {
        calls[i].flags = 0b1111U & ~(1U << i);
        calls[i].creations = 4 + i;
        calls[i].newest = Epoch(i);
        calls[i].words[1] = 10 - i;
        ranks.start(i, calls[i]);
        EXPECT_TRUE(calls[0].active) << "not all have called";
        ranks.deliver();
    }
    for (const AgreeOperation& call : calls) {
        EXPECT_FALSE(call.active);
        EXPECT_FALSE(call.error);
        EXPECT_EQ(call.agreed_flags, 0b1000U);
        EXPECT_EQ(call.creation, 6U);
        EXPECT_EQ(call.epoch, Epoch(2));
        EXPECT_EQ(call.agreed_words, (wire::AgreementWords{0, 10, 0, 0}));
        EXPECT_TRUE(call.lost.empty());
    }
    EXPECT_THAT(ranks.creations, ElementsAre(6, 6, 6));
    EXPECT_EQ(ranks.at(0).kept_frames(), 0U);
}

TEST(Agreements, goes_on_without_a_rank_that_left_the_view) {
    Ranks ranks(3);
    std::array<AgreeOperation, 3> calls;
    for (const std::size_t i : {1U, 2U}) ranks.start(i, calls[i]);
    ranks.deliver({0});
    EXPECT_TRUE(calls[1].active);
    for (const std::size_t i : {1U, 2U}) ranks.at(i).set_view(ranks.view(3, {0}));
    ranks.deliver({0});
    for (const std::size_t i : {1U, 2U}) {
        EXPECT_FALSE(calls[i].active);
        EXPECT_FALSE(calls[i].error);
        EXPECT_THAT(calls[i].lost, ElementsAre(Rank(0)));
        EXPECT_EQ(calls[i].epoch, Epoch(3));
    }
}

TEST(Agreements, takes_a_node_that_joined_again_for_another_one) {
    Ranks ranks(2);
    AgreeOperation call;
    ranks.start(0, call);
    View again = ranks.view(4, {1});
    again.members.push_back({.node = ranks.nodes[1], .rank = Rank(7)});
    ranks.at(0).set_view(again);
    EXPECT_FALSE(call.active);
    EXPECT_THAT(call.lost, ElementsAre(Rank(1)));
}

TEST(Agreements, answers_after_its_communicator_has_ended) {
    Ranks ranks(3);
    std::array<AgreeOperation, 3> calls;
    for (std::size_t i = 0; i < 3; ++i) ranks.start(i, calls[i]);
    ranks.deliver({});
    EXPECT_FALSE(calls[2].active);
    ranks.at(1).end(kContext);
    // As from a rank that missed the decision.
    wire::Agreement late{.context = kContext, .number = 0, .epoch = Epoch(1)};
    late.call.emplace_back();
    EXPECT_TRUE(ranks.at(1).handle(ranks.nodes[2], late));
    EXPECT_THAT(ranks.in_flight(), ElementsAre(wire::AgreementStep::decision));
    // Nothing else happens there.
    late.number = 1;
    EXPECT_TRUE(ranks.at(1).handle(ranks.nodes[2], late));
    EXPECT_EQ(ranks.at(1).kept_frames(), 0U);
}

/// Rank 2 calls `what` where the others call agree; all get the same error.
void expect_last_differs(Ranks& ranks, wire::AgreementKind what, Errc code) {
    std::array<AgreeOperation, 3> calls;
    calls[2].what = what;
    for (std::size_t i = 0; i < 3; ++i) ranks.start(i, calls[i]);
    ranks.deliver();
    for (const AgreeOperation& call : calls) {
        ASSERT_TRUE(call.error);
        EXPECT_EQ(call.error->code(), code);
        EXPECT_EQ(call.error->cause(), "agreement #0: rank 0 called agree; rank 2 called " +
                                           agreement_text({.kind = what}));
    }
}

TEST(Agreements, tells_all_ranks_which_calls_differ) {
    Ranks ranks(3);
    expect_last_differs(ranks, wire::AgreementKind::grow, Errc::invalid_argument);
    std::array<AgreeOperation, 2> same;
    same[1].fingerprint = 1;
    for (std::size_t i = 0; i < 2; ++i) ranks.start(i, same[i]);
    ranks.deliver();
    ASSERT_TRUE(same[1].error);
    EXPECT_EQ(same[1].error->cause(),
              "agreement #1: rank 0 and rank 1 called agree with different arguments");
}

TEST(Agreements, shrink_beside_another_call_can_be_repeated) {
    Ranks ranks(3);
    expect_last_differs(ranks, wire::AgreementKind::shrink, Errc::membership_changed);
}

TEST(Agreements, tells_an_excluded_rank_that_it_waits_in_vain) {
    Ranks ranks(3);
    std::array<AgreeOperation, 3> calls;
    for (const std::size_t i : {1U, 2U}) {
        calls[i].what = wire::AgreementKind::exclude;
        calls[i].excluded = {Rank(0)};
        ranks.start(i, calls[i]);
    }
    ranks.start(0, calls[0]);
    ranks.deliver();
    for (const std::size_t i : {1U, 2U}) {
        EXPECT_FALSE(calls[i].active);
        EXPECT_FALSE(calls[i].error) << calls[i].error->what();
        EXPECT_TRUE(calls[i].lost.empty()) << "it is in the view";
    }
    ASSERT_TRUE(calls[0].error);
    EXPECT_EQ(calls[0].error->code(), Errc::invalid_argument);
    EXPECT_EQ(calls[0].error->cause(),
              "agreement #0: rank 0 called agree; rank 1 called rebuild_excluding rank 0");
}

TEST(Agreements, rejects_wrong_excluded_ranks) {
    Ranks ranks(2);
    for (const std::uint32_t wrong : {0U, 2U}) {
        AgreeOperation call;
        call.what = wire::AgreementKind::exclude;
        call.excluded = {Rank(wrong)};
        ranks.start(0, call);
        ASSERT_TRUE(call.error);
        EXPECT_EQ(call.error->code(), Errc::invalid_argument);
        EXPECT_THAT(call.error->cause(), HasSubstr("rank 0 excludes rank " + std::to_string(wrong) +
                                                   "; it must exclude"));
    }
    // The calls do not count.
    AgreeOperation call;
    ranks.start(0, call);
    EXPECT_EQ(call.number, 0U);
}

TEST(Agreements, counts_a_call_that_was_cancelled_or_timed_out) {
    Ranks ranks(3);
    std::array<AgreeOperation, 3> calls;
    calls[1].flags = calls[2].flags = 3;
    calls[0].flags = 2;
    calls[0].timeout = 10s;
    ranks.start(0, calls[0]);
    ranks.start(1, calls[1]);
    EXPECT_EQ(ranks.at(0).next_deadline(), TimePoint(5s)) << "then it asks for news";
    ranks.deliver();
    ranks.at(1).cancel(calls[1]);
    ranks.advance(11s);
    ASSERT_TRUE(calls[0].error);
    EXPECT_EQ(calls[0].error->code(), Errc::timed_out);
    EXPECT_EQ(calls[0].error->cause(),
              "rank 0 waited 11.0 s in agree #0 for rank 2; every rank of the communicator must "
              "call it");
    ASSERT_TRUE(calls[1].error);
    EXPECT_EQ(calls[1].error->code(), Errc::cancelled);
    EXPECT_EQ(calls[1].error->cause(), "rank 1 cancelled agree #0");
    EXPECT_FALSE(ranks.at(0).next_deadline());
    ranks.start(2, calls[2]);
    ranks.deliver();
    EXPECT_FALSE(calls[2].error);
    EXPECT_EQ(calls[2].agreed_flags, 2U);
}

TEST(Agreements, shrink_completes_a_call_that_ended_before_the_decision) {
    Ranks ranks(3);
    std::array<AgreeOperation, 3> calls;
    for (std::size_t i = 0; i < 3; ++i) {
        calls[i].what = wire::AgreementKind::checkpoint;
        calls[i].plan = {.excluded = {Rank(2)}, .grows = true};
        ranks.start(i, calls[i]);
    }
    ranks.at(0).end_all(Error(Errc::minority_partition, "alone"));
    EXPECT_TRUE(calls[0].error.has_value());
    std::array<AgreeOperation, 2> again;
    again[0].what = wire::AgreementKind::shrink;
    ranks.start(0, again[0]);
    ranks.deliver();
    EXPECT_FALSE(calls[1].active || calls[2].active || again[0].active);
    EXPECT_FALSE(again[0].error.has_value());
    EXPECT_TRUE(again[0].resumed);
    EXPECT_EQ(again[0].plan, calls[1].plan);
    EXPECT_EQ(again[0].number, calls[1].number);
    // It knows the result now, so the next call is another one.
    again[1].what = wire::AgreementKind::shrink;
    ranks.start(0, again[1]);
    EXPECT_FALSE(again[1].resumed);
    EXPECT_EQ(again[1].number, 1U);
    ranks.at(0).cancel(again[1]);
}

TEST(Agreements, refuses_calls_that_others_are_too_far_behind) {
    Ranks ranks(2);
    std::deque<AgreeOperation> calls;
    for (std::uint64_t i = 0; i < Agreements::kMaxUndecided; ++i) {
        ranks.start(0, calls.emplace_back());
        EXPECT_TRUE(calls.back().active);
    }
    AgreeOperation next;
    ranks.start(0, next);
    ASSERT_TRUE(next.error);
    EXPECT_EQ(next.error->code(), Errc::too_many_pending);
    EXPECT_EQ(next.error->cause(),
              "16 agreements of this communicator are undecided, since number 0; the other ranks "
              "must call them too");
    for (std::uint64_t i = 0; i < Agreements::kMaxUndecided; ++i) {
        ranks.start(1, calls.emplace_back());
    }
    ranks.deliver();
    for (const AgreeOperation& call : calls) EXPECT_FALSE(call.active || call.error);
}

}  // namespace
}  // namespace nexar::engine
