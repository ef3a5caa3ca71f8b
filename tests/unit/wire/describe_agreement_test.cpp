#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "describe_checks.hpp"
#include "wire/describe_membership.hpp"

/// The limits and rules of the messages with which the members of a communicator agree.
namespace nexar::wire {
namespace {

using testing::changed;
using testing::encoded;
using testing::example;
using testing::expect_accepted;
using testing::expect_not_encoded;
using testing::expect_refused;
using testing::letters;
using testing::patched;

// In the body of a state with one excluded rank and a stored value.
constexpr std::size_t kKindAt = 27;
constexpr std::size_t kExcludedAt = 92;
constexpr std::size_t kStoredInAt = 98;
constexpr std::size_t kCodeAt = 108;
constexpr std::size_t kLostAt = 174;

/// A frame of this step that keeps all rules.
Agreement valid_agreement(AgreementStep step) {
    auto m = example<Agreement>();
    m.step = step;
    if (step == AgreementStep::state) return m;
    m.call.clear();
    m.stored_in = Epoch(0);
    if (step != AgreementStep::proposal && step != AgreementStep::decision) m.value.clear();
    if (step == AgreementStep::waiting) m.missing = {Rank(1), Rank(2)};
    return m;
}

constexpr unsigned kAgreementSteps = 6;

TEST(Agreement, rejects_unknown_steps_and_kinds) {
    for (unsigned step = 1; step <= kAgreementSteps; ++step) {
        expect_accepted(encoded(valid_agreement(static_cast<AgreementStep>(step))));
    }
    const auto m = example<Agreement>();
    for (const unsigned step : {0U, 7U, 255U}) {
        expect_refused(patched(m, 0, step, 1), Errc::malformed,
                       "agreement: step is " + std::to_string(step));
        expect_not_encoded(
            changed<Agreement>([&](auto& x) { x.step = static_cast<AgreementStep>(step); }),
            "step is " + std::to_string(step));
    }
    for (unsigned kind = 1; kind <= 5; ++kind) expect_accepted(patched(m, kKindAt, kind, 1));
    for (const unsigned kind : {0U, 6U, 255U}) {
        expect_refused(patched(m, kKindAt, kind, 1), Errc::malformed,
                       "agreement: kind is " + std::to_string(kind));
        expect_not_encoded(changed<Agreement>([&](auto& x) {
                               x.call.front().kind = static_cast<AgreementKind>(kind);
                           }),
                           "kind is " + std::to_string(kind));
    }
}

TEST(Agreement, accepts_every_number) {
    const auto m = valid_agreement(AgreementStep::question);
    for (const std::size_t at : {1U, 9U, 17U}) {
        for (const std::uint64_t value : {std::uint64_t{0}, ~std::uint64_t{0}}) {
            expect_accepted(patched(m, at, value, 8));
        }
    }
}

TEST(Agreement, has_a_call_exactly_in_a_state) {
    expect_not_encoded(changed<Agreement>([](auto& x) { x.call.clear(); }),
                       "number of calls is 0; a state must have one, and nothing else may");
    for (unsigned step = 2; step <= kAgreementSteps; ++step) {
        auto m = valid_agreement(static_cast<AgreementStep>(step));
        m.call = example<Agreement>().call;
        expect_not_encoded(m, "number of calls is 1; a state must have one");
        expect_refused(patched(example<Agreement>(), 0, step, 1), Errc::malformed,
                       "agreement: number of calls is 1; a state must have one");
    }
    expect_refused(patched(valid_agreement(AgreementStep::question), 0, 1, 1), Errc::malformed,
                   "agreement: number of calls is 0; a state must have one");
    auto two = example<Agreement>();
    two.call.push_back(two.call.front());
    expect_not_encoded(two, "call");
}

TEST(Agreement, has_a_value_where_it_needs_one) {
    const std::string words = "a proposal and a decision must have one, a state may";
    for (const AgreementStep step : {AgreementStep::proposal, AgreementStep::decision}) {
        auto m = valid_agreement(step);
        m.value.clear();
        expect_not_encoded(m, "number of values is 0; " + words);
        expect_refused(
            patched(valid_agreement(AgreementStep::question), 0, static_cast<unsigned>(step), 1),
            Errc::malformed, "agreement: number of values is 0; " + words);
    }
    for (const AgreementStep step : {AgreementStep::stored, AgreementStep::question}) {
        auto m = valid_agreement(step);
        m.value = example<Agreement>().value;
        expect_not_encoded(m, "number of values is 1; " + words);
        expect_refused(
            patched(valid_agreement(AgreementStep::proposal), 0, static_cast<unsigned>(step), 1),
            Errc::malformed, "agreement: number of values is 1; " + words);
    }
    expect_accepted(encoded(changed<Agreement>([](auto& x) {
        x.value.clear();
        x.stored_in = Epoch(0);
    })));
}

TEST(Agreement, has_an_error_only_in_a_decision) {
    const auto failed = [](AgreementStep step) {
        auto m = valid_agreement(step);
        m.value.front().code = Errc::invalid_argument;
        return m;
    };
    auto decision = failed(AgreementStep::decision);
    decision.value.front().text = letters(1024);
    expect_accepted(encoded(decision));
    decision.value.front().text = letters(1025);
    expect_not_encoded(decision, "text has 1025 bytes");
    for (const AgreementStep step : {AgreementStep::state, AgreementStep::proposal}) {
        expect_not_encoded(failed(step), "only a decision can be an error");
    }
    expect_refused(patched(example<Agreement>(), kCodeAt, 100, 2), Errc::malformed,
                   "agreement: number of values is 1; only a decision can be an error");
    auto text = valid_agreement(AgreementStep::decision);
    text.value.front().text = "why";
    expect_not_encoded(text, "text length is 3; it must be 0 without an error");
}

TEST(Agreement, stores_in_a_view_that_the_sender_knows) {
    const std::string words = "it must be at most the epoch, and 0 without a stored value";
    const auto m = example<Agreement>();
    expect_accepted(patched(m, kStoredInAt, 5, 8));
    expect_accepted(patched(m, kStoredInAt, 0, 8));
    expect_refused(patched(m, kStoredInAt, 6, 8), Errc::malformed,
                   "agreement: stored_in is 6; " + words);
    expect_not_encoded(changed<Agreement>([](auto& x) { x.stored_in = Epoch(6); }), words);
    for (unsigned step = 2; step <= kAgreementSteps; ++step) {
        auto other = valid_agreement(static_cast<AgreementStep>(step));
        other.stored_in = Epoch(1);
        expect_not_encoded(other, words);
    }
    expect_not_encoded(changed<Agreement>([](auto& x) { x.value.clear(); }), words);
}

TEST(Agreement, names_ranks_in_order) {
    expect_not_encoded(
        changed<Agreement>([](auto& x) { x.call.front().excluded = {Rank(2), Rank(1)}; }),
        "number of excluded ranks is 2; they must strictly ascend");
    expect_not_encoded(
        changed<Agreement>([](auto& x) { x.value.front().lost = {Rank(1), Rank(1)}; }),
        "number of lost ranks is 2; they must strictly ascend");
    auto waiting = valid_agreement(AgreementStep::waiting);
    waiting.missing = {Rank(2), Rank(2)};
    expect_not_encoded(waiting, "number of missing ranks is 2; they must strictly ascend");
    expect_refused(patched(example<Agreement>(), kLostAt + 2, 3, 4), Errc::malformed,
                   "agreement: number of lost ranks is 2; they must strictly ascend");
    expect_not_encoded(changed<Agreement>([](auto& x) { x.missing = {Rank(1)}; }),
                       "number of missing ranks is 1; only `waiting` may name any");
}

TEST(Agreement, bounds_lists_and_ranks) {
    const auto m = example<Agreement>();
    expect_refused(patched(m, kExcludedAt, kMaxViewMembers + 1, 2), Errc::limit_exceeded,
                   "agreement: number of excluded ranks");
    expect_refused(patched(m, kExcludedAt, kMaxViewMembers, 2), Errc::malformed,
                   "number of excluded ranks");  // they are not there
    expect_accepted(patched(m, kExcludedAt + 2, kMaxRank, 4));
    expect_refused(patched(m, kExcludedAt + 2, kMaxRank + 1, 4), Errc::limit_exceeded,
                   "agreement: rank");
    const auto all = [] {
        std::vector<Rank> ranks;
        ranks.reserve(kMaxViewMembers);
        for (std::uint32_t i = 0; i < kMaxViewMembers; ++i) ranks.emplace_back(i);
        return ranks;
    }();
    auto largest = m;
    largest.call.front().excluded = all;
    largest.value.front().lost = all;
    expect_accepted(encoded(largest));
    largest.call.front().excluded.emplace_back(kMaxRank);
    expect_not_encoded(largest, "number of excluded ranks");
    EXPECT_EQ(static_cast<unsigned>(FrameType::agreement), 83U);
    EXPECT_TRUE(belongs_on(Lane::control, FrameType::agreement));
    EXPECT_FALSE(belongs_on(Lane::seed, FrameType::agreement)) << "a seed has no communicator";
    EXPECT_FALSE(belongs_in_datagram(FrameType::agreement)) << "datagrams may be lost";
}

}  // namespace
}  // namespace nexar::wire
