#pragma once

#include <functional>
#include <string_view>

#include "wire/describe_seed.hpp"
#include "wire/membership_messages.hpp"

/// The layouts of wire/membership_messages.hpp, written as in wire/describe.hpp.
namespace nexar::wire {

template <class Io>
void describe(Io& io, Of<Suspicion> auto& m) {
    io.choice("step", m.step, SuspicionStep::asked, SuspicionStep::suspected,
              FaultKind::unknown_value);
    io.array("node", m.node);
    io.number("incarnation", m.incarnation);
    io.number("counter", m.counter);
}

template <class Io>
void describe(Io& io, Of<BallotNumber> auto& m) {
    io.number("round", m.round);
    io.array("proposer", m.proposer);
}

template <class Io>
void describe(Io& io, Of<Ballot> auto& m) {
    io.choice("step", m.step, BallotStep::prepare, BallotStep::refused, FaultKind::unknown_value);
    io.number("epoch", m.epoch, {1, ~std::uint64_t{0}});
    describe(io, m.number);
    describe(io, m.other);
    io.list("view", m.view, 1);
    io.rule([&] { return m.number.round != 0; }, "round", m.number.round, "it must not be 0");
    io.rule(
        [&] {
            return m.view.empty() || m.step == BallotStep::accept || m.step == BallotStep::promise;
        },
        "number of views", m.view.size(), "only a promise and an accept have a view");
    io.rule([&] { return m.step != BallotStep::accept || m.view.size() == 1; }, "number of views",
            m.view.size(), "an accept must have one");
    io.rule(
        [&] {
            return m.step != BallotStep::promise || m.view.empty() == (m.other == BallotNumber{});
        },
        "number of views", m.view.size(), "a promise must have the view of its last vote");
    io.rule([&] { return m.view.empty() || m.view.front().epoch == m.epoch; }, "epoch",
            m.epoch.value(), "it must be that of the view");
}

template <class Io>
void describe(Io& io, Of<Revoke> auto& m) {
    io.number("context", m.context);
}

template <class Io>
void describe_ranks(Io& io, std::string_view number, auto& ranks) {
    io.list(number, ranks, kMaxViewMembers);
    io.rule([&] { return detail::strictly_ascends(ranks, std::identity{}); }, number, ranks.size(),
            "they must strictly ascend");
}

template <class Io>
void describe(Io& io, Of<AgreementCall> auto& m) {
    io.choice("kind", m.kind, AgreementKind::agree, AgreementKind::checkpoint,
              FaultKind::unknown_value);
    io.number("flags", m.flags);
    io.number("fingerprint", m.fingerprint);
    io.number("creations", m.creations);
    io.number("newest", m.newest);
    for (auto& word : m.words) io.number("word", word);
    describe_ranks(io, "number of excluded ranks", m.excluded);
}

template <class Io>
void describe(Io& io, Of<AgreementValue> auto& m) {
    io.number("code", m.code);
    io.number("flags", m.flags);
    io.number("fingerprint", m.fingerprint);
    io.number("creation", m.creation);
    io.number("epoch", m.epoch);
    for (auto& word : m.words) io.number("word", word);
    describe_ranks(io, "number of lost ranks", m.lost);
    io.text("text", m.text, {0, kMaxReportTextBytes});
    io.rule([&] { return m.code != Errc{} || m.text.empty(); }, "text length", m.text.size(),
            "it must be 0 without an error");
}

template <class Io>
void describe(Io& io, Of<Agreement> auto& m) {
    io.choice("step", m.step, AgreementStep::state, AgreementStep::waiting,
              FaultKind::unknown_value);
    io.number("context", m.context);
    io.number("number", m.number);
    io.number("epoch", m.epoch);
    io.list("call", m.call, 1);
    io.number("stored_in", m.stored_in);
    io.list("value", m.value, 1);
    describe_ranks(io, "number of missing ranks", m.missing);
    io.rule([&] { return m.call.size() == (m.step == AgreementStep::state ? 1 : 0); },
            "number of calls", m.call.size(), "a state must have one, and nothing else may");
    io.rule(
        [&] {
            const bool has_one =
                m.step == AgreementStep::proposal || m.step == AgreementStep::decision;
            return m.step == AgreementStep::state || m.value.size() == (has_one ? 1 : 0);
        },
        "number of values", m.value.size(),
        "a proposal and a decision must have one, a state may, and nothing else");
    io.rule(
        [&] {
            return m.step == AgreementStep::decision || m.value.empty() ||
                   m.value.front().code == Errc{};
        },
        "number of values", m.value.size(), "only a decision can be an error");
    io.rule(
        [&] {
            const bool stored = m.step == AgreementStep::state && !m.value.empty();
            return m.stored_in <= (stored ? m.epoch : Epoch(0));
        },
        "stored_in", m.stored_in.value(),
        "it must be at most the epoch, and 0 without a stored value");
    io.rule([&] { return m.missing.empty() || m.step == AgreementStep::waiting; },
            "number of missing ranks", m.missing.size(), "only `waiting` may name any");
}

}  // namespace nexar::wire
