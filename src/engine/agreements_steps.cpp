// The steps of an agreement, see Agreements.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.hpp"
#include "engine/agreements.hpp"
#include "engine/planted_bug.hpp"

namespace nexar::engine {

namespace {

/// The error of ranks that called different things. It is nobody's fault if one of them shrinks, or
/// after a loss: something may have ended a call on one rank, and the other may still be in the
/// call.
wire::AgreementValue differing_calls(std::uint64_t number, Rank a,
                                     const wire::AgreementCall& called, Rank b,
                                     const wire::AgreementCall& other, bool some_lost) {
    const std::string first = agreement_text(called);
    const std::string second = agreement_text(other);
    const bool shrinks =
        called.kind == wire::AgreementKind::shrink || other.kind == wire::AgreementKind::shrink;
    const bool blameless = called.kind != other.kind && (some_lost || shrinks);
    wire::AgreementValue value{.code =
                                   blameless ? Errc::membership_changed : Errc::invalid_argument};
    value.text = printable(
        first == second
            ? fmt::format("agreement #{}: rank {} and rank {} called {} with different arguments",
                          number, a.value(), b.value(), first)
            : fmt::format("agreement #{}: rank {} called {}; rank {} called {}", number, a.value(),
                          first, b.value(), second),
        wire::kMaxReportTextBytes);
    return value;
}

}  // namespace

/// True for members of the communicator in the present view that are not excluded.
bool Agreements::takes_part(const Group& group, Rank rank,
                            const std::vector<Rank>& excluded) const {
    if (names(excluded, rank)) return false;
    if (epoch_ == Epoch(0)) return true;
    const std::optional<Rank>& view_rank = group.view_ranks[rank.value()];
    if (!view_rank) return false;
    const auto found = view_.find(group.members[rank.value()]);
    return found != view_.end() && found->second == *view_rank;
}

std::optional<Rank> Agreements::coordinator(const Group& group,
                                            const std::vector<Rank>& excluded) const {
    for (std::uint32_t rank = 0; rank < group.members.size(); ++rank) {
        if (takes_part(group, Rank(rank), excluded)) return Rank(rank);
    }
    return std::nullopt;
}

/// The participants whose state this rank lacks, or that have not stored what it proposed.
std::vector<Rank> Agreements::missing(const Group& group, const Instance& instance,
                                      const std::vector<Rank>& excluded) const {
    std::vector<Rank> ranks;
    for (std::uint32_t i = 0; i < group.members.size(); ++i) {
        const Rank rank(i);
        if (!takes_part(group, rank, excluded)) continue;
        if (rank == group.me) {
            if (!instance.call) ranks.push_back(rank);
        } else if (instance.proposed) {
            if (!instance.stored_by.contains(rank)) ranks.push_back(rank);
        } else {
            const auto state = instance.states.find(rank);
            const bool known =
                state != instance.states.end() &&
                (state->second.epoch == epoch_ || planted(PlantedBug::act_in_old_epoch));
            if (!known) ranks.push_back(rank);
        }
    }
    return ranks;
}

void Agreements::send(const Group& group, const Instance& instance, Rank to,
                      wire::AgreementStep step) {
    wire::Agreement frame{
        .step = step, .context = group.id, .number = instance.number, .epoch = epoch_};
    if (step == wire::AgreementStep::state) {
        frame.call.push_back(instance.made_call());
        if (instance.stored && instance.stored->code == Errc{}) {
            frame.stored_in = instance.stored_in;
            frame.value.push_back(*instance.stored);
        }
    }
    if (step == wire::AgreementStep::proposal || step == wire::AgreementStep::decision) {
        frame.value.push_back(instance.stored_value());
    }
    if (step == wire::AgreementStep::waiting) {
        const auto asker = instance.states.find(to);
        frame.missing =
            missing(group, instance,
                    asker == instance.states.end() ? std::vector<Rank>{}
                                                   : asker->second.call.front().excluded);
    }
    owner_->send(group.members[to.value()], frame);
}

/// Takes part in the present view with the call of this rank.
void Agreements::join(Group& group, Instance& instance) {
    const std::vector<Rank>& excluded = instance.made_call().excluded;
    if (!takes_part(group, group.me, {})) return;  // evicted
    const auto first = coordinator(group, excluded);
    // Ranks that exclude others may have another coordinator than those that do not.
    for (std::uint32_t i = 0; i < group.members.size(); ++i) {
        const Rank rank(i);
        if (rank == group.me || (rank != first && excluded.empty())) continue;
        if (!takes_part(group, rank, {})) continue;
        send(group, instance, rank, wire::AgreementStep::state);
    }
    compare(group, instance);
    propose(group, instance);
    if (first == group.me && !instance.decided && !instance.proposed) ask_all(group, instance);
}

/// Asks the participants whose state is missing, unless they are only late. A rank that knows the
/// decision does not send its state again in a new view, and only errors are decided before all
/// participants have called.
void Agreements::ask_all(const Group& group, const Instance& instance) {
    bool changed = false;
    for (std::uint32_t i = 0; i < group.members.size(); ++i) {
        changed |= !takes_part(group, Rank(i), {});
    }
    for (const Rank rank : missing(group, instance, instance.made_call().excluded)) {
        if (changed || instance.states.contains(rank)) {
            send(group, instance, rank, wire::AgreementStep::question);
        }
    }
}

/// Fails if another rank called something else. Neither call can succeed then, in any view: a value
/// needs the state of both ranks. So the failure is decided without asking anybody.
void Agreements::compare(Group& group, Instance& instance) {
    if (!instance.call || instance.stored) return;
    for (const auto& [rank, state] : instance.states) {
        const wire::AgreementCall& other = state.call.front();
        if (other.fingerprint == instance.call->fingerprint && other.kind == instance.call->kind &&
            other.excluded == instance.call->excluded) {
            continue;
        }
        bool some_lost = false;
        for (std::uint32_t member = 0; member < group.members.size(); ++member) {
            some_lost = some_lost || !takes_part(group, Rank(member), {});
        }
        return decide(
            group, instance,
            differing_calls(instance.number, group.me, *instance.call, rank, other, some_lost));
    }
}

/// As the coordinator, proposes a value once every state is known.
void Agreements::propose(Group& group, Instance& instance) {
    if (!instance.call || instance.decided || instance.proposed) return;
    const std::vector<Rank>& excluded = instance.made_call().excluded;
    if (coordinator(group, excluded) != group.me) return;
    // In order, so that Group::creation counts.
    const auto undecided = std::ranges::find(group.instances, false, &Instance::decided);
    if (undecided->number != instance.number) return;
    const std::size_t lacking = missing(group, instance, excluded).size();
    if (lacking > (planted(PlantedBug::skip_states) ? 1 : 0)) return;
    instance.stored = choose(group, instance);
    instance.stored_in = epoch_;
    instance.proposed = true;
    for (const Rank rank : missing(group, instance, excluded)) {
        send(group, instance, rank, wire::AgreementStep::proposal);
    }
    count(group, instance);
}

/// The value that was stored in the highest view, because it may be decided; else a new one. (All
/// that are stored are equal: a rank that stored a value takes part in every later view, or is gone
/// for good. A peer that lies about this must not matter.)
wire::AgreementValue Agreements::choose(const Group& group, const Instance& instance) const {
    const wire::AgreementValue* best = instance.stored ? &*instance.stored : nullptr;
    Epoch best_in = instance.stored_in;
    for (const auto& [rank, state] : instance.states) {
        if (state.value.empty()) continue;
        if (best != nullptr && state.stored_in <= best_in) continue;
        best = &state.value.front();
        best_in = state.stored_in;
    }
    if (best != nullptr && !planted(PlantedBug::ignore_stored)) return *best;
    const wire::AgreementCall& own = instance.made_call();
    wire::AgreementValue value{.flags = own.flags,
                               .fingerprint = own.fingerprint,
                               .creation = std::max(own.creations, group.creation),
                               .epoch = std::max(own.newest, epoch_),
                               .words = own.words};
    for (std::uint32_t i = 0; i < group.members.size(); ++i) {
        const Rank rank(i);
        if (!takes_part(group, rank, {})) {
            value.lost.push_back(rank);
            continue;
        }
        const auto state = instance.states.find(rank);
        if (state == instance.states.end()) continue;
        const wire::AgreementCall& call = state->second.call.front();
        value.flags &= call.flags;
        value.creation = std::max(value.creation, call.creations);
        value.epoch = std::max(value.epoch, call.newest);
        for (std::size_t word = 0; word < value.words.size(); ++word) {
            value.words[word] = std::max(value.words[word], call.words[word]);
        }
    }
    return value;
}

/// Decides once every participant has stored the proposal.
void Agreements::count(Group& group, Instance& instance) {
    if (!instance.proposed || instance.decided) return;
    const std::size_t lacking = missing(group, instance, instance.made_call().excluded).size();
    if (lacking > (planted(PlantedBug::decide_early) ? 1 : 0)) return;
    decide(group, instance, wire::AgreementValue(instance.stored_value()));
}

void Agreements::decide(Group& group, Instance& instance, const wire::AgreementValue& value) {
    instance.stored = value;
    instance.decided = true;
    for (const auto& [rank, state] : std::exchange(instance.states, {})) {
        instance.askers.insert(rank);
    }
    for (const Rank rank : std::exchange(instance.askers, {})) {
        if (takes_part(group, rank, {})) {
            send(group, instance, rank, wire::AgreementStep::decision);
        }
    }
    if (value.code == Errc{}) {
        group.creation = std::max(group.creation, value.creation);
        if (!group.ended) owner_->agreed(group.id, value.creation);
    }
    finish(group, instance);
    propose_next(group);
}

/// Ends the operation of this rank with the decision.
void Agreements::finish(Group& group, Instance& instance) {
    const wire::AgreementValue value = instance.stored_value();
    if (value.code != Errc{}) {
        return detach(instance, Error(value.code, value.text, {.rank = public_rank(group.me)}));
    }
    if (AgreeOperation* const operation = instance.operation) {
        operation->agreed_flags = value.flags;
        operation->lost = value.lost;
        operation->epoch = value.epoch;
        operation->creation = value.creation;
        operation->agreed_words = value.words;
        if (planted(PlantedBug::lost_locally)) {
            operation->lost.clear();
            for (std::uint32_t i = 0; i < group.members.size(); ++i) {
                if (!takes_part(group, Rank(i), {})) operation->lost.emplace_back(i);
            }
        }
    }
    detach(instance, std::nullopt);
}

void Agreements::propose_next(Group& group) {
    const auto undecided = std::ranges::find(group.instances, false, &Instance::decided);
    if (undecided != group.instances.end()) propose(group, *undecided);
}

}  // namespace nexar::engine
