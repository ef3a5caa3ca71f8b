// Agreements: communicators, operations, views and deadlines. agreements_steps.cpp has the
// protocol.

#include "engine/agreements.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "engine/planted_bug.hpp"

namespace nexar::engine {

namespace {

std::string agreement_ranks(const std::vector<Rank>& ranks) {
    constexpr std::size_t kMostNamed = 16;
    std::vector<std::uint32_t> named;
    named.reserve(std::min(ranks.size(), kMostNamed));
    for (std::size_t i = 0; i < ranks.size() && i < kMostNamed; ++i) {
        named.push_back(ranks[i].value());
    }
    return fmt::format(
        "rank{} {}{}", ranks.size() == 1 ? "" : "s", fmt::join(named, ", "),
        ranks.size() > kMostNamed ? fmt::format(" and {} more", ranks.size() - kMostNamed) : "");
}

}  // namespace

std::string agreement_text(const wire::AgreementCall& call) {
    switch (call.kind) {
        case wire::AgreementKind::agree:
            return "agree";
        case wire::AgreementKind::shrink:
            return "shrink";
        case wire::AgreementKind::exclude:
            return fmt::format("rebuild_excluding {}", agreement_ranks(call.excluded));
        case wire::AgreementKind::grow:
            return "grow";
        case wire::AgreementKind::checkpoint:
            break;
    }
    return "elastic_checkpoint";
}

Agreements::Group* Agreements::find(ContextId context) const {
    const auto found = groups_.find(context);
    return found == groups_.end() ? nullptr : found->second.get();
}

Agreements::Instance* Agreements::find(Group& group, std::uint64_t number) {
    if (group.instances.empty() || number < group.instances.front().number) return nullptr;
    const std::uint64_t index = number - group.instances.front().number;
    return index < group.instances.size() ? &group.instances[static_cast<std::size_t>(index)]
                                          : nullptr;
}

/// Finds or adds the number; those before it must have been added or forgotten.
Agreements::Instance& Agreements::make(Group& group, std::uint64_t number) {
    if (group.instances.empty()) {
        group.instances.push_back({.number = std::min(number, group.started)});
    }
    while (group.instances.back().number < number) {
        group.instances.push_back({.number = group.instances.back().number + 1});
    }
    Instance* const found = find(group, number);
    NEXAR_ASSERT(found != nullptr, "numbers that were forgotten must not be used");
    return *found;
}

/// A rank with an older undecided number than kMaxUndecided cannot start a new one, so nobody asks
/// for numbers that lie further behind.
void Agreements::forget_old(Group& group) {
    const auto undecided = std::ranges::find(group.instances, false, &Instance::decided);
    const std::uint64_t next =
        undecided == group.instances.end() ? group.started : undecided->number;
    const std::uint64_t keep = planted(PlantedBug::forget_decisions) ? 0 : kKept;
    while (!group.instances.empty() && group.instances.front().number + keep < next) {
        group.instances.pop_front();
    }
}

/// The rank in the view that a member of a new communicator has. A member of the parent that was
/// not lost there has the same one as there, although it may have failed and joined again since.
std::optional<Rank> Agreements::view_rank_of(const NodeId& node, const Group* parent) const {
    const auto in_view = view_.find(node);
    const auto now = in_view == view_.end() ? std::nullopt : std::optional(in_view->second);
    if (parent == nullptr) return now;
    const auto known = std::ranges::find(parent->members, node);
    if (known == parent->members.end()) return now;
    const Rank rank(static_cast<std::uint32_t>(known - parent->members.begin()));
    for (auto last = parent->instances.rbegin(); last != parent->instances.rend(); ++last) {
        const auto& stored = last->stored;
        if (!last->decided || !stored || stored->code != Errc{}) continue;
        if (names(stored->lost, rank)) return now;
        break;
    }
    return parent->view_ranks[rank.value()];
}

void Agreements::learn_view_ranks(Group& group, const Group* parent) const {
    if (epoch_ == Epoch(0) || std::exchange(group.has_view_ranks, true)) return;
    group.view_ranks.reserve(group.members.size());
    for (const NodeId& node : group.members) {
        group.view_ranks.push_back(view_rank_of(node, parent));
    }
}

void Agreements::add(ContextId context, std::span<const NodeId> members, Rank me,
                     ContextId parent) {
    auto owned = std::make_unique<Group>();
    owned->id = context;
    owned->me = me;
    owned->members.assign(members.begin(), members.end());
    learn_view_ranks(*owned, find(parent));
    const bool added = groups_.emplace(context, std::move(owned)).second;
    NEXAR_ASSERT(added, "a communicator must be made only once");
    if (early_.empty()) return;
    for (const NodeId& node : members) {
        const auto found = early_.find(node);
        if (found == early_.end()) continue;
        std::deque<wire::Agreement> frames;
        std::erase_if(found->second.frames, [&](wire::Agreement& frame) {
            if (frame.context != context) return false;
            found->second.bytes -= size_of(frame);
            frames.push_back(std::move(frame));
            return true;
        });
        if (found->second.frames.empty()) early_.erase(found);
        // A peer that sent nonsense will do so again.
        for (const wire::Agreement& frame : frames) static_cast<void>(handle(node, frame));
    }
}

void Agreements::end(ContextId context) {
    Group* const group = find(context);
    NEXAR_ASSERT(group != nullptr && !group->ended);
    NEXAR_ASSERT(
        std::ranges::all_of(group->instances, [](const Instance& one) { return !one.operation; }));
    group->ended = true;
    if (group->started == 0) {
        groups_.erase(context);
        return;
    }
    ended_.push_back(context);
    if (ended_.size() <= kMaxEnded) return;
    groups_.erase(ended_.front());
    ended_.pop_front();
}

void Agreements::start(ContextId context, AgreeOperation& operation) {
    Group* const group = find(context);
    NEXAR_ASSERT(group != nullptr && !group->ended);
    const auto fail = [&](Errc code, std::string cause) {
        operation.error = Error(code, std::move(cause));
        owner_->end(operation);
    };
    if (names(operation.excluded, group->me) ||
        std::ranges::any_of(operation.excluded,
                            [&](Rank rank) { return rank.value() >= group->members.size(); })) {
        return fail(Errc::invalid_argument,
                    fmt::format("rank {} excludes {}; it must exclude other ranks of the "
                                "communicator, which has {}",
                                group->me.value(), agreement_ranks(operation.excluded),
                                group->members.size()));
    }
    const auto undecided = std::ranges::find(group->instances, false, &Instance::decided);
    if (undecided != group->instances.end() &&
        undecided->number + kMaxUndecided <= group->started) {
        return fail(Errc::too_many_pending,
                    fmt::format("{} agreements of this communicator are undecided, since number "
                                "{}; the other ranks must call them too",
                                kMaxUndecided, undecided->number));
    }
    operation.context_id = context;
    operation.resumed = false;
    if (operation.what == wire::AgreementKind::shrink) {
        if (Instance* const last = unfinished(*group)) return resume(*group, *last, operation);
    }
    forget_old(*group);
    operation.number = group->started++;
    Instance& instance = make(*group, operation.number);
    instance.plan = operation.plan;
    instance.call = wire::AgreementCall{.kind = operation.what,
                                        .flags = operation.flags,
                                        .fingerprint = operation.fingerprint,
                                        .creations = operation.creations,
                                        .newest = operation.newest,
                                        .words = operation.words,
                                        .excluded = operation.excluded};
    wait(instance, operation);
    std::erase_if(instance.states,
                  [&](const auto& entry) { return names(operation.excluded, entry.first); });
    join(*group, instance);
}

void Agreements::wait(Instance& instance, AgreeOperation& operation) {
    operation.started = now_;
    const bool endless = operation.timeout > TimePoint::max() - now_;
    operation.deadline = endless ? TimePoint::max() : now_ + operation.timeout;
    operation.ask_at = endless ? TimePoint::max() : now_ + operation.timeout / 2;
    instance.operation = &operation;
    pending_.push_back(&operation);
}

/// The last call of this rank, if it makes a communicator and this rank does not know its result.
Agreements::Instance* Agreements::unfinished(Group& group) {
    if (group.started == 0) return nullptr;
    Instance* const last = find(group, group.started - 1);
    const bool open = last != nullptr && last->abandoned && last->call &&
                      last->call->kind != wire::AgreementKind::agree;
    return open ? last : nullptr;
}

void Agreements::resume(Group& group, Instance& instance, AgreeOperation& operation) {
    instance.abandoned = false;
    operation.resumed = true;
    operation.number = instance.number;
    operation.plan = instance.plan;
    wait(instance, operation);
    if (instance.decided) finish(group, instance);
}

/// Ends the operation of this rank before the decision.
void Agreements::abandon(Instance& instance, Error error) {
    if (instance.operation != nullptr) instance.abandoned = true;
    detach(instance, std::move(error));
}

/// Ends the operation of this rank. The agreement goes on without it.
void Agreements::detach(Instance& instance, std::optional<Error> error) {
    AgreeOperation* const operation = std::exchange(instance.operation, nullptr);
    if (operation == nullptr) return;
    std::erase(pending_, operation);
    operation->error = std::move(error);
    owner_->end(*operation);
}

void Agreements::cancel(AgreeOperation& operation) {
    if (!operation.active) return;
    Group* const group = find(operation.context_id);
    Instance* const instance = group == nullptr ? nullptr : find(*group, operation.number);
    NEXAR_ASSERT(instance != nullptr && instance->operation == &operation);
    abandon(*instance, Error(Errc::cancelled,
                             fmt::format("rank {} cancelled {} #{}", group->me.value(),
                                         agreement_text(instance->made_call()), instance->number),
                             {.rank = public_rank(group->me)}));
}

void Agreements::end_all(const Error& error) {
    for (const auto& [id, group] : groups_) {
        for (Instance& instance : group->instances) abandon(instance, error);
    }
}

/// Forgets the communicators that have ended here and in which no other rank is left to ask.
void Agreements::forget_deserted() {
    std::erase_if(ended_, [this](ContextId id) {
        const Group& group = *groups_.at(id);
        if (!group.has_view_ranks) return false;
        for (std::uint32_t i = 0; i < group.members.size(); ++i) {
            if (Rank(i) != group.me && takes_part(group, Rank(i), {})) return false;
        }
        groups_.erase(id);
        return true;
    });
}

void Agreements::set_view(const View& view) {
    if (view.epoch <= epoch_) return;
    epoch_ = view.epoch;
    view_.clear();
    for (const Member& member : view.members) view_.emplace(member.node, member.rank);
    forget_deserted();
    std::erase_if(early_, [&](const auto& entry) { return !view_.contains(entry.first); });
    for (const auto& [id, group] : groups_) {
        learn_view_ranks(*group);
        for (Instance& instance : group->instances) {
            std::erase_if(instance.states,
                          [&](const auto& entry) { return !takes_part(*group, entry.first, {}); });
            instance.proposed = false;
            instance.stored_by.clear();
            instance.missing.clear();
        }
        for (Instance& instance : group->instances) {
            if (!instance.call || instance.decided) continue;
            if (!planted(PlantedBug::silent_in_new_view)) join(*group, instance);
        }
    }
}

void Agreements::connected(const NodeId& node) {
    for (const auto& [id, group] : groups_) {
        const auto found = std::ranges::find(group->members, node);
        if (found == group->members.end()) continue;
        const Rank rank(static_cast<std::uint32_t>(found - group->members.begin()));
        if (rank == group->me || !takes_part(*group, rank, {})) continue;
        for (const Instance& instance : group->instances) {
            if (!instance.call) continue;
            if (instance.decided) {
                // A rank that was excluded must learn that it waits in vain.
                if (!names(instance.call->excluded, rank)) continue;
                send(*group, instance, rank, wire::AgreementStep::state);
                continue;
            }
            const auto first = coordinator(*group, instance.made_call().excluded);
            if (first == rank || !instance.call->excluded.empty()) {
                send(*group, instance, rank, wire::AgreementStep::state);
            }
            if (first == rank && instance.stored && instance.stored_in == epoch_) {
                send(*group, instance, rank, wire::AgreementStep::stored);
            }
            if (first != group->me || !takes_part(*group, rank, instance.call->excluded)) continue;
            send(*group, instance, rank,
                 instance.proposed ? wire::AgreementStep::proposal : wire::AgreementStep::question);
        }
    }
}

void Agreements::cannot_reach(const NodeId& node, const Error& error) {
    for (const auto& [id, group] : groups_) {
        const auto found = std::ranges::find(group->members, node);
        if (found == group->members.end()) continue;
        const Rank rank(static_cast<std::uint32_t>(found - group->members.begin()));
        for (Instance& instance : group->instances) {
            if (instance.operation == nullptr) continue;
            const std::vector<Rank>& excluded = instance.operation->excluded;
            const auto first = coordinator(*group, excluded);
            if (!takes_part(*group, rank, excluded)) continue;
            const bool needed = epoch_ == Epoch(0) || first == rank || first == group->me;
            if (needed) abandon(instance, error.within({.rank = public_rank(rank)}));
        }
    }
}

void Agreements::advance(TimePoint now) {
    now_ = now;
    const std::vector<AgreeOperation*> pending = pending_;
    for (AgreeOperation* const operation : pending) {
        if (operation->ask_at <= now && now < operation->deadline) ask(*operation);
        if (now < operation->deadline) continue;
        Group* const group = find(operation->context_id);
        Instance& instance = *find(*group, operation->number);
        abandon(instance, too_late(*group, instance));
    }
}

std::optional<TimePoint> Agreements::next_deadline() const noexcept {
    std::optional<TimePoint> first;
    for (const AgreeOperation* const operation : pending_) {
        const TimePoint due = std::min(operation->ask_at, operation->deadline);
        if (!first || due < *first) first = due;
    }
    return first;
}

std::size_t Agreements::kept_frames() const noexcept {
    std::size_t frames = 0;
    for (const auto& [node, early] : early_) frames += early.frames.size();
    for (const auto& [id, group] : groups_) {
        for (const Instance& instance : group->instances) frames += instance.states.size();
    }
    return frames;
}

/// Asks the coordinator, so that the error of a timeout can name the ranks that it waits for.
void Agreements::ask(AgreeOperation& operation) {
    operation.ask_at = TimePoint::max();
    Group* const group = find(operation.context_id);
    const Instance& instance = *find(*group, operation.number);
    const auto first = coordinator(*group, instance.made_call().excluded);
    if (first && *first != group->me) {
        send(*group, instance, *first, wire::AgreementStep::question);
    }
}

Error Agreements::too_late(const Group& group, const Instance& instance) const {
    const std::vector<Rank>& excluded = instance.made_call().excluded;
    const auto first = coordinator(group, excluded);
    std::vector<Rank> late = instance.missing;
    if (first == group.me) late = missing(group, instance, excluded);
    if (late.empty() && first) late.push_back(*first);
    const auto waited = std::chrono::duration_cast<std::chrono::duration<double>>(
        now_ - instance.operation->started);
    return {Errc::timed_out,
            fmt::format("rank {} waited {:.1f} s in {} #{} for {}; every rank of the communicator "
                        "must call it",
                        group.me.value(), waited.count(), agreement_text(instance.made_call()),
                        instance.number, late.empty() ? "a new view" : agreement_ranks(late)),
            {.rank = public_rank(late.empty() ? group.me : late.front())}};
}

}  // namespace nexar::engine
