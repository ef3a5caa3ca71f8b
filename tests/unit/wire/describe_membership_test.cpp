#include "wire/describe_membership.hpp"

#include <gtest/gtest.h>

#include <string>

#include "describe_checks.hpp"

/// The limits and rules of the messages that detect failures and agree on views.
namespace nexar::wire {
namespace {

using testing::changed;
using testing::encoded;
using testing::example;
using testing::expect_accepted;
using testing::expect_not_encoded;
using testing::expect_refused;
using testing::patched;

constexpr std::size_t kRoundAt = 9;
constexpr std::size_t kOtherAt = 33;
constexpr std::size_t kViewAt = 57;

ViewFrame view_of(std::uint64_t epoch) {
    return changed<ViewFrame>([&](auto& x) { x.epoch = Epoch(epoch); });
}

/// A ballot of this step that keeps all rules.
Ballot valid(BallotStep step) {
    auto m = example<Ballot>();
    m.step = step;
    if (step != BallotStep::promise) m.other = {};
    if (step != BallotStep::promise && step != BallotStep::accept) m.view.clear();
    return m;
}

TEST(Suspicion, rejects_unknown_steps) {
    const auto m = example<Suspicion>();
    for (unsigned step = 1; step <= 3; ++step) expect_accepted(patched(m, 0, step, 1));
    for (const unsigned step : {0U, 4U, 255U}) {
        expect_refused(patched(m, 0, step, 1), Errc::malformed,
                       "suspicion: step is " + std::to_string(step));
        expect_not_encoded(
            changed<Suspicion>([&](auto& x) { x.step = static_cast<SuspicionStep>(step); }),
            "step is " + std::to_string(step));
    }
}

TEST(Suspicion, accepts_every_number) {
    const auto m = example<Suspicion>();
    for (const std::uint64_t value : {std::uint64_t{0}, ~std::uint64_t{0}}) {
        expect_accepted(patched(m, 17, value, 8));
        expect_accepted(patched(m, 25, value, 8));
    }
}

TEST(Ballot, rejects_unknown_steps) {
    for (const unsigned step : {0U, 6U, 255U}) {
        expect_refused(patched(valid(BallotStep::prepare), 0, step, 1), Errc::malformed,
                       "ballot: step is " + std::to_string(step));
        auto unknown = valid(BallotStep::prepare);
        unknown.step = static_cast<BallotStep>(step);
        expect_not_encoded(unknown, "step is " + std::to_string(step));
    }
    for (unsigned step = 1; step <= 5; ++step) {
        expect_accepted(encoded(valid(static_cast<BallotStep>(step))));
    }
}

TEST(Ballot, requires_an_epoch) {
    const auto m = valid(BallotStep::prepare);
    expect_accepted(patched(m, 1, ~std::uint64_t{0}, 8));
    expect_refused(patched(m, 1, 0, 8), Errc::malformed, "ballot: epoch is 0");
    expect_not_encoded(changed<Ballot>([](auto& x) { x.epoch = Epoch(0); }), "epoch is 0");
}

TEST(Ballot, requires_a_round) {
    for (unsigned step = 1; step <= 5; ++step) {
        auto m = valid(static_cast<BallotStep>(step));
        expect_accepted(patched(m, kRoundAt, 1, 8));
        expect_refused(patched(m, kRoundAt, 0, 8), Errc::malformed,
                       "ballot: round is 0; it must not be 0");
        m.number.round = 0;
        expect_not_encoded(m, "round is 0; it must not be 0");
    }
}

TEST(Ballot, has_a_view_only_in_a_promise_and_an_accept) {
    for (const BallotStep step : {BallotStep::prepare, BallotStep::accepted, BallotStep::refused}) {
        auto m = valid(step);
        m.view.push_back(view_of(m.epoch.value()));
        expect_not_encoded(m, "number of views is 1; only a promise and an accept have a view");
        const auto with_view =
            patched(valid(BallotStep::promise), 0, static_cast<unsigned>(step), 1);
        expect_refused(with_view, Errc::malformed,
                       "ballot: number of views is 1; only a promise and an accept have a view");
    }
}

TEST(Ballot, accept_requires_a_view) {
    auto m = valid(BallotStep::accept);
    m.view.clear();
    expect_not_encoded(m, "number of views is 0; an accept must have one");
    expect_refused(patched(valid(BallotStep::prepare), 0, 3, 1), Errc::malformed,
                   "ballot: number of views is 0; an accept must have one");
}

TEST(Ballot, promise_has_the_view_of_its_last_vote) {
    auto never_voted = valid(BallotStep::promise);
    never_voted.other = {};
    never_voted.view.clear();
    expect_accepted(encoded(never_voted));
    // A vote without its view: round and proposer each name one.
    for (const std::size_t at : {kOtherAt, kOtherAt + 8}) {
        expect_refused(
            patched(never_voted, at, 1, 1), Errc::malformed,
            "ballot: number of views is 0; a promise must have the view of its last vote");
    }
    auto without_view = valid(BallotStep::promise);
    without_view.view.clear();
    expect_not_encoded(without_view, "number of views is 0; a promise must have the view");
    // A view without a vote.
    auto without_vote = valid(BallotStep::promise);
    without_vote.other = {};
    expect_not_encoded(without_vote, "number of views is 1; a promise must have the view");
    expect_refused(patched(valid(BallotStep::accept), 0, 2, 1), Errc::malformed,
                   "ballot: number of views is 1; a promise must have the view of its last vote");
}

TEST(Ballot, other_is_free_in_every_step_but_a_promise) {
    for (const BallotStep step :
         {BallotStep::prepare, BallotStep::accept, BallotStep::accepted, BallotStep::refused}) {
        auto m = valid(step);
        m.other = {.round = ~std::uint64_t{0}, .proposer = Id{std::byte{1}}};
        expect_accepted(encoded(m));
    }
}

TEST(Ballot, has_the_epoch_of_its_view) {
    for (const BallotStep step : {BallotStep::promise, BallotStep::accept}) {
        auto m = valid(step);
        expect_accepted(encoded(m));
        for (const std::uint64_t epoch : {4U, 6U}) {
            expect_refused(
                patched(m, 1, epoch, 8), Errc::malformed,
                "ballot: epoch is " + std::to_string(epoch) + "; it must be that of the view");
            m.view = {view_of(epoch)};
            expect_not_encoded(m, "epoch is 5; it must be that of the view");
            m = valid(step);
        }
    }
}

TEST(Ballot, has_at_most_one_view) {
    auto m = valid(BallotStep::accept);
    expect_refused(patched(m, kViewAt, 2, 2), Errc::limit_exceeded,
                   "ballot: view has 2 entries; the limit is 1");
    m.view.push_back(m.view.front());
    expect_not_encoded(m, "view has 2 entries");
}

TEST(Ballot, checks_its_view_like_a_view) {
    const auto m = valid(BallotStep::accept);  // the view has the member 2 and next_rank 5
    expect_accepted(patched(m, kViewAt + 2 + 32, 3, 4));
    expect_refused(patched(m, kViewAt + 2 + 32, 2, 4), Errc::malformed,
                   "ballot: next_rank is 2; it must be above the ranks of all members");
    expect_refused(patched(m, kViewAt + 2, 0, 8), Errc::malformed, "ballot: epoch is 0");
    auto unordered = m;
    unordered.view.front().left = {Rank(1), Rank(1)};
    expect_not_encoded(unordered, "number of ranks that left");
}

TEST(BallotNumber, is_ordered_by_round_then_proposer) {
    const BallotNumber none{};
    const BallotNumber low{.round = 1, .proposer = Id{std::byte{9}}};
    const BallotNumber high{.round = 2, .proposer = Id{std::byte{1}}};
    EXPECT_LT(none, low);
    EXPECT_LT(low, high) << "the round decides";
    EXPECT_LT(high, (BallotNumber{.round = 2, .proposer = Id{std::byte{0x80}}}))
        << "bytes compare as unsigned";
}

TEST(NewWorld, needs_two_members) {
    expect_not_encoded(changed<NewWorld>([](auto& x) { x.members.resize(1); }),
                       "number of members");
    expect_accepted(encoded(changed<NewWorld>([](auto& x) { x.members.resize(3); })));
}

TEST(NewWorld, limits_the_number_of_senders) {
    expect_not_encoded(changed<NewWorld>([](auto& x) { x.senders = kMaxViewMembers + 1; }),
                       "senders");
}

TEST(NewWorld, the_largest_one_fits) {
    EXPECT_LE(encoded(changed<NewWorld>([](auto& x) { x.members.resize(kMaxViewMembers); })).size(),
              rules_of(FrameType::new_world)->max_body_bytes);
}

TEST(Revoke, accepts_every_context) {
    expect_accepted(patched(example<Revoke>(), 0, 0, 8));
    expect_accepted(patched(example<Revoke>(), 0, ~std::uint64_t{0}, 8));
}

TEST(LargestMembershipValue, of_every_small_message_fits_the_frame_limit) {
    const auto body_of = [](const auto& message) {
        return encoded(message).size() - kFrameHeaderBytes;
    };
    EXPECT_EQ(body_of(example<Suspicion>()), 33U);
    EXPECT_LE(body_of(example<Suspicion>()), rules_of(FrameType::suspicion)->max_body_bytes);
    EXPECT_EQ(body_of(example<Revoke>()), 8U);
    EXPECT_LE(body_of(example<Revoke>()), rules_of(FrameType::revoke)->max_body_bytes);
    EXPECT_EQ(body_of(valid(BallotStep::prepare)), 59U);
}

}  // namespace
}  // namespace nexar::wire
