// Agreements: the frames of other ranks.

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/try.hpp"
#include "engine/agreements.hpp"
#include "engine/planted_bug.hpp"

namespace nexar::engine {

namespace {

Error bad_agreement(Rank from, std::string_view what) {
    return {Errc::protocol_violation,
            fmt::format("rank {} {} in an agreement", from.value(), what)};
}

}  // namespace

Result<void> Agreements::check(const Group& group, Rank from, const wire::Agreement& frame) {
    const auto too_high = [&](const std::vector<Rank>& ranks) {
        return !ranks.empty() && ranks.back().value() >= group.members.size();
    };
    if (!frame.call.empty()) {
        const wire::AgreementCall& call = frame.call.front();
        if (too_high(call.excluded)) return bad_agreement(from, "excludes an unknown rank");
        if (names(call.excluded, from)) return bad_agreement(from, "excludes itself");
        const bool foreign =
            !frame.value.empty() && frame.value.front().fingerprint != call.fingerprint;
        if (foreign) return bad_agreement(from, "stored the value of another call");
    }
    if (!frame.value.empty() && too_high(frame.value.front().lost)) {
        return bad_agreement(from, "reports an unknown rank as lost");
    }
    if (too_high(frame.missing)) return bad_agreement(from, "waits for an unknown rank");
    return {};
}

Result<void> Agreements::handle(const NodeId& from, const wire::Agreement& frame) {
    if (!in_view(from)) return {};
    Group* const group = find(frame.context);
    if (group == nullptr) {
        keep_early(from, frame);
        return {};
    }
    const auto found = std::ranges::find(group->members, from);
    const Rank rank(static_cast<std::uint32_t>(found - group->members.begin()));
    if (found == group->members.end() || rank == group->me) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer sent an agreement of communicator {:016x}, of which it "
                                 "is not a member",
                                 frame.context.value()));
    }
    NEXAR_TRY(check(*group, rank, frame));
    if (!takes_part(*group, rank, {})) return {};
    if (frame.number < group->started) {
        Instance* const instance = find(*group, frame.number);
        if (instance != nullptr) dispatch(*group, *instance, rank, frame);
        return {};
    }
    // A rank can be ahead only until its oldest undecided number is kMaxUndecided behind.
    const bool early = frame.step == wire::AgreementStep::state && !group->ended &&
                       frame.number - group->started < kMaxUndecided;
    if (early) dispatch(*group, make(*group, frame.number), rank, frame);
    return {};
}

void Agreements::dispatch(Group& group, Instance& instance, Rank from,
                          const wire::Agreement& frame) {
    if (instance.call && names(instance.call->excluded, from)) return;
    if (!instance.call && frame.step != wire::AgreementStep::state) return;
    switch (frame.step) {
        case wire::AgreementStep::state:
            return on_state(group, instance, from, frame);
        case wire::AgreementStep::proposal:
            return on_proposal(group, instance, from, frame);
        case wire::AgreementStep::stored:
            if (!instance.proposed || instance.decided) return;
            if (frame.epoch != epoch_ && !planted(PlantedBug::act_in_old_epoch)) return;
            instance.stored_by.insert(from);
            return count(group, instance);
        case wire::AgreementStep::decision: {
            // Valid in any view.
            const wire::AgreementValue& value = frame.value.front();
            const bool fits = value.code != Errc{} || !instance.call ||
                              value.fingerprint == instance.call->fingerprint;
            if (!instance.decided && fits) decide(group, instance, value);
            return;
        }
        case wire::AgreementStep::question:
            return on_question(group, instance, from);
        case wire::AgreementStep::waiting:
            instance.missing = frame.missing;
            return;
    }
}

void Agreements::on_state(Group& group, Instance& instance, Rank from,
                          const wire::Agreement& frame) {
    if (instance.decided) {
        if (planted(PlantedBug::silent_after_return)) return;
        return send(group, instance, from, wire::AgreementStep::decision);
    }
    // One of a newer view waits here for the view; an older one only shows what the rank called.
    const auto known = instance.states.find(from);
    if (known != instance.states.end() && frame.epoch < known->second.epoch) return;
    instance.states.insert_or_assign(from, frame);
    compare(group, instance);
    propose(group, instance);
    // The sender may know the decision in the meantime, and then sends no state in this view.
    const bool asks = frame.epoch < epoch_ && instance.call && !instance.decided &&
                      coordinator(group, instance.call->excluded) == group.me;
    if (asks) send(group, instance, from, wire::AgreementStep::question);
}

/// The coordinator has the state that this rank sent in the present view, so a proposal from a view
/// that is not known here does not exist.
void Agreements::on_proposal(Group& group, Instance& instance, Rank from,
                             const wire::Agreement& frame) {
    if (instance.decided) return send(group, instance, from, wire::AgreementStep::decision);
    const wire::AgreementValue& value = frame.value.front();
    if (!instance.call || value.fingerprint != instance.call->fingerprint) return;
    if (!planted(PlantedBug::act_in_old_epoch)) {
        if (frame.epoch != epoch_ || coordinator(group, instance.call->excluded) != from) return;
    }
    if (!planted(PlantedBug::acknowledge_only)) {
        instance.stored = value;
        instance.stored_in = epoch_;
    }
    send(group, instance, from, wire::AgreementStep::stored);
}

void Agreements::on_question(Group& group, Instance& instance, Rank from) {
    if (instance.decided) {
        if (planted(PlantedBug::silent_after_return)) return;
        return send(group, instance, from, wire::AgreementStep::decision);
    }
    instance.askers.insert(from);
    const auto asker = instance.states.find(from);
    if (asker == instance.states.end()) return;
    if (coordinator(group, asker->second.call.front().excluded) != group.me) return;
    send(group, instance, from, wire::AgreementStep::waiting);
}

/// Keeps a state in a communicator that this rank has not made yet.
void Agreements::keep_early(const NodeId& from, const wire::Agreement& frame) {
    if (frame.step != wire::AgreementStep::state) return;
    const std::size_t bytes = size_of(frame);
    if (bytes > kMaxEarlyBytes) return;
    Early& early = early_[from];
    // Older ones may be of communicators that ended long ago.
    while (!early.frames.empty() &&
           (early.frames.size() >= kMaxEarly || early.bytes + bytes > kMaxEarlyBytes)) {
        early.bytes -= size_of(early.frames.front());
        early.frames.pop_front();
    }
    early.frames.push_back(frame);
    early.bytes += bytes;
}

std::size_t Agreements::size_of(const wire::Agreement& frame) noexcept {
    std::size_t bytes = sizeof frame;
    for (const auto& call : frame.call) bytes += sizeof call + call.excluded.size() * sizeof(Rank);
    for (const auto& value : frame.value) {
        bytes += sizeof value + value.lost.size() * sizeof(Rank) + value.text.size();
    }
    return bytes;
}

}  // namespace nexar::engine
