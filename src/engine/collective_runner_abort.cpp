// How collectives fail, on all ranks.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "engine/collective_runner.hpp"
#include "engine/collective_words.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"

namespace nexar::engine {

namespace {

std::string title(const CollectiveOperation& operation) {
    if (operation.terms.agrees_on_memory) return "set-up of shared memory for collectives";
    return fmt::format("{}{} #{}", schedule::name(operation.terms.what),
                       operation.terms.has_counts || operation.terms.exchanges_counts ? "_v" : "",
                       operation.context->collectives.shown(operation.number));
}

}  // namespace

/// Ends an operation with an error once no link uses its memory. With `tell`, tells all members.
void CollectiveRunner::fail(CollectiveOperation& operation, const Error& error, bool tell) {
    if (operation.failure) return;
    operation.failure = error.within({.operation = title(operation)});
    if (tell) tell_all(*operation.context, operation.number, *operation.failure);
    MemoryCollectives* const memory =
        operation.in_memory_queue ? operation.context->collectives.memory.get() : nullptr;
    let_go(operation);
    conclude(operation);
    if (memory != nullptr) pump_memory(*memory);
}

void CollectiveRunner::pass_over(Context& context, const Error& reason) {
    ContextCollectives& here = context.collectives;
    const std::uint64_t number = here.next++;
    if (here.running.empty()) {
        here.first = here.next;
    } else {
        here.running.push_back(nullptr);
    }
    *here.past_call(number) = {};
    drop_early(context, number);
    // A program that calls on and on must not fill the queues of frames to its peers.
    constexpr std::uint64_t kMostHalted = 256;
    if (services_->halted() && ++here.halted > kMostHalted) end_from(context, number, reason);
    if (!here.is_over(number))
        tell_all(context, number, reason.within({.rank = public_rank(context.me)}));
}

void CollectiveRunner::abandon(CollectiveOperation& operation, const Error& error) {
    NEXAR_ASSERT(operation.reserved && operation.active);
    operation.reserved = false;
    operation.failure = error;
    Context& context = *operation.context;
    forget_places(context, operation.number);
    drop_early(context, operation.number);
    if (!context.collectives.is_over(operation.number)) {
        tell_all(context, operation.number, error.within({.rank = public_rank(context.me)}));
    }
    retire(operation);
    drain_all(context);
}

/// A member left before it did its part in an operation: neither that operation nor a later one can
/// run, even if it exchanges nothing with that member.
void CollectiveRunner::end_from(Context& context, std::uint64_t number, const Error& error,
                                bool tell) {
    ContextCollectives& here = context.collectives;
    if (here.is_over(number)) return;
    here.over = {.operation = number, .error = error};
    if (tell) tell_all(context, number, error);
    for (CollectiveOperation* const operation : all_running()) {
        if (operation->context != &context || operation->number < number) continue;
        if (operation->active) fail(*operation, error, false);
    }
}

void CollectiveRunner::tell_all(Context& context, std::uint64_t number, const Error& error) {
    const wire::CollectiveAbort abort = abort_of(context, number, error);
    for (Pair* const pair : context.pairs) {
        if (pair != nullptr) say(*pair, abort);
    }
}

/// Withdraws unsent messages, and drops those that are still to arrive.
void CollectiveRunner::let_go(CollectiveOperation& operation) {
    for (std::uint32_t i = 0; i < operation.sends_used; ++i) {
        CollectiveSend& send = operation.sends[i];
        if (send.state == CollectiveSend::State::waiting) {
            send.pair->collectives->waiting.erase(send);
            send.state = CollectiveSend::State::ended;
        } else {
            send.cancel();
        }
    }
    if (operation.in_memory_queue) leave_memory(operation);
    if (operation.plan == nullptr) return;
    for (StepState& state : operation.steps) {
        state.kept.clear();
        if (state.in == nullptr) continue;
        CollectiveIn& in = *state.in;
        if (in.stream == nullptr) {
            drop(in);
        } else {
            in.stream->refuse();  // its aborted() follows
        }
    }
    forget_unsent(operation);
    for (const Plan::Outgoing& outgoing : operation.plan->outgoing()) {
        drain(*operation.context->pairs[outgoing.peer]);
    }
}

void CollectiveRunner::cancel(CollectiveOperation& operation) {
    if (!operation.active || operation.failure || operation.reserved) return;
    fail(operation,
         Error(Errc::cancelled,
               fmt::format("rank {} cancelled {}", operation.context->me.value(), title(operation)),
               {.rank = public_rank(operation.context->me)}));
}

/// Tells a peer that called something else what was called here. The peer's answer ends the
/// operation, so both sides know both calls.
void CollectiveRunner::differ(CollectiveOperation& operation, Pair& pair) {
    operation.differs = true;
    gave_up(operation, pair.rank);
    say(pair, wire::CollectiveMismatch{.context = operation.context->id,
                                       .operation = operation.number,
                                       .description = description_of(operation.terms)});
}

Result<void> CollectiveRunner::on_mismatch(Pair& pair, const wire::CollectiveMismatch& mismatch) {
    if (pair.context == nullptr) return {};
    ContextCollectives& here = pair.context->collectives;
    NEXAR_TRY(may_answer(pair));
    if (const Error* const known = here.heard_of(mismatch.operation)) {
        say(pair, abort_of(*pair.context, mismatch.operation, *known));
        return {};
    }
    // Too early to compare: its messages or the next mismatch will show a difference.
    if (!here.is_called(mismatch.operation)) return {};
    PastCollective* const past = here.past_call(mismatch.operation);
    if (past == nullptr) return {};  // it ended too long ago
    const Called other{pair.rank, printable(mismatch.description, wire::kMaxReportTextBytes)};
    const Called own{pair.context->me, description_of(past->terms)};
    std::optional<Error> error;
    if (own.description != other.description) {
        error =
            Error(Errc::invalid_argument, difference(here.shown(mismatch.operation), own, other));
    } else if (mismatch.expects != 0 && !past->sent_to.empty() &&
               !past->sent_to[pair.rank.value()]) {
        error = unfit(past->terms, here.shown(mismatch.operation),
                      {.sender = own.rank, .receiver = pair.rank, .expects = mismatch.expects});
    }
    if (!error) return {};
    error = error->within({.rank = public_rank(pair.rank)});
    if (CollectiveOperation* const operation = here.find(mismatch.operation)) {
        fail(*operation, *error);
    } else {
        // Too late to tell the caller: its operation ended before the difference was found.
        if (past->ended_well && !std::exchange(past->difference_told, true)) {
            NEXAR_LOG_WARNING("{}; the call of this rank had already succeeded", error->cause());
        }
        say(pair, abort_of(*pair.context, mismatch.operation, *error));
    }
    return {};
}

Result<void> CollectiveRunner::may_answer(const Pair& pair) const {
    if (!pair.collectives || pair.collectives->said.size() < limits_.max_answers) return {};
    return Error(Errc::limit_exceeded, "the peer does not read what this node sends");
}

Error CollectiveRunner::unfit(const CollectiveTerms& terms, std::uint64_t number,
                              const Share& share) {
    return {Errc::invalid_argument,
            fmt::format("{}_v #{}: rank {} sends {} bytes to rank {}, which expects {}; pass "
                        "matching counts",
                        schedule::name(terms.what), number, share.sender.value(), share.sends,
                        share.receiver.value(), share.expects)};
}

Result<void> CollectiveRunner::on_abort(Pair& pair, const wire::CollectiveAbort& abort) {
    if (pair.context == nullptr || is_over(pair)) return {};
    Context& context = *pair.context;
    const Rank rank = abort.rank.value() < context.pairs.size() ? abort.rank : pair.rank;
    const Error error(abort.code, printable(abort.text, wire::kMaxReportTextBytes),
                      {.rank = public_rank(rank)});
    if (abort.gone) {
        end_from(context, abort.operation, error, false);
        return {};
    }
    if (!context.collectives.is_called(abort.operation)) {
        EarlyOperation* const known = early(pair, abort.operation);
        if (known != nullptr && !known->aborted) known->aborted = error;
        context.collectives.hear(abort.operation, error);
        return {};
    }
    CollectiveOperation* const operation = context.collectives.find(abort.operation);
    if (operation == nullptr) return {};
    // Not passed on: the rank that failed tells all others, or they ask, see compare().
    context.collectives.hear(abort.operation, error);
    fail(*operation, error, false);
    return {};
}

/// Called when `rank` abandoned a message or called something else, and has not said why yet.
void CollectiveRunner::gave_up(CollectiveOperation& operation, Rank rank) {
    if (operation.failure || operation.silent) return;
    operation.silent = rank;
    operation.deadline = std::min(operation.deadline, now_ + limits_.silence);
    be_due(operation);
}

void CollectiveRunner::shorten(CollectiveOperation& operation, TimePoint latest) noexcept {
    if (latest >= operation.expiry()) return;
    operation.timeout_began = operation.started;
    operation.timeout = latest - operation.started;
    if (!operation.listed) return;
    operation.deadline = std::min(operation.deadline, latest);
    be_due(operation);
}

void CollectiveRunner::advance(TimePoint now) {
    now_ = now;
    if (!due_ || now < *due_) return;
    due_.reset();
    for (CollectiveOperation* const operation : all_running()) {
        if (!operation->active || operation->failure) continue;
        if (now >= operation->deadline) {
            expire(*operation);
            continue;
        }
        if (now >= operation->warn) warn(*operation, now);
        if (now >= operation->compare) compare(*operation, now);
        be_due(*operation);
    }
}

void CollectiveRunner::be_due(const CollectiveOperation& operation) noexcept {
    const TimePoint due = std::min({operation.deadline, operation.warn, operation.compare});
    due_ = due_ ? std::min(*due_, due) : due;
}

/// A copy of the list, because ending one operation may end others.
std::vector<CollectiveOperation*> CollectiveRunner::all_running() const {
    std::vector<CollectiveOperation*> all;
    for (CollectiveOperation* at = running_.first(); at != nullptr;
         at = decltype(running_)::after(*at)) {
        all.push_back(at);
    }
    return all;
}

std::optional<TimePoint> CollectiveRunner::next_deadline() const noexcept {
    return running_.empty() ? std::nullopt : due_;
}

/// Tells the awaited ranks what was called here: ranks that called different things may wait for
/// each other without a message, and one of them may be the only rank that knows of a failure.
void CollectiveRunner::compare(CollectiveOperation& operation, TimePoint now) {
    const std::string own = description_of(operation.terms);
    for (const auto& [rank, bytes] : awaited(operation)) {
        say(*operation.context->pairs[rank],
            wire::CollectiveMismatch{.context = operation.context->id,
                                     .operation = operation.number,
                                     .expects = bytes,
                                     .description = own});
    }
    operation.compare_after *= 2;
    operation.compare = now + operation.compare_after;
}

void CollectiveRunner::warn(CollectiveOperation& operation, TimePoint now) {
    if (now < next_warning_) {
        operation.warn = next_warning_;
        return;
    }
    next_warning_ = now + limits_.warn_pause;
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - operation.started);
    NEXAR_LOG_WARNING("{} at rank {} has been waiting {} s for {}", title(operation),
                      operation.context->me.value(), seconds.count(), late_ranks(operation));
    operation.warn = TimePoint::max();
}

void CollectiveRunner::expire(CollectiveOperation& operation) {
    const Rank me = operation.context->me;
    if (operation.silent) {
        return fail(operation,
                    Error(Errc::link_closed,
                          fmt::format("rank {} abandoned its part without giving a reason",
                                      operation.silent->value()),
                          {.rank = public_rank(*operation.silent)}));
    }
    const auto seconds =
        std::chrono::duration_cast<std::chrono::duration<double>>(now_ - operation.started);
    fail(operation,
         Error(Errc::timed_out,
               fmt::format("rank {} waited {:.1f} s in {} for {}; find out why they are late, or "
                           "raise collective_timeout",
                           me.value(), seconds.count(), title(operation), late_ranks(operation)),
               {.rank = public_rank(me)}));
}

void CollectiveRunner::down(Peer& peer, const Error& reason) {
    peer.collectives.on_lane.pair = nullptr;
    while (Pair* blocked = peer.collectives.blocked.pop_front()) {
        blocked->collectives_blocked = false;
    }
    for (const auto& [id, pair] : peer.pairs) {
        if (pair->context != nullptr) pair->context->collectives.some_lost = true;
        if (!pair->collectives) continue;
        PairCollectives& here = *pair->collectives;
        here.said.clear();
        // Messages that still have a stream had arrived completely. The others fail below.
        std::vector<CollectiveIn*> lost;
        for (const auto& [sequence, in] : here.streams) {
            if (in->stream == nullptr) lost.push_back(in.get());
        }
        for (CollectiveIn* const in : lost) lose(*in);
    }
    poll_memory();  // the peer may have written its last data since
    for (CollectiveOperation* const operation : all_running()) {
        if (!operation->active || operation->failure) continue;
        const auto& silent = operation->silent;
        const bool never_said = silent && operation->context->pairs[silent->value()]->peer == &peer;
        if (!never_said && !needs(*operation, peer)) continue;
        const auto& pairs = operation->context->pairs;
        const auto lost = std::ranges::find_if(
            pairs, [&](const Pair* pair) { return pair != nullptr && pair->peer == &peer; });
        end_from(*operation->context, operation->number,
                 reason.within({.rank = public_rank((*lost)->rank)}));
    }
}

void CollectiveRunner::ended(Pair& pair, std::uint64_t operations) {
    const Error error(Errc::closed,
                      fmt::format("rank {} ended its communicator", pair.rank.value()),
                      {.rank = public_rank(pair.rank)});
    end_from(*pair.context, operations, error, false);  // that rank tells all members
}

/// Called when the rest of a message will not arrive.
void CollectiveRunner::lose(CollectiveIn& in) {
    in.stream = nullptr;
    if (in.early) {
        auto& messages = in.pair->context->collectives.early.at(in.header.operation).messages;
        std::erase_if(messages, [&](const EarlyCollective& one) { return one.stream == &in; });
    }
    CollectiveOperation* const operation = in.operation;
    if (operation != nullptr) operation->steps[in.step].arrived = false;
    drop(in);
    if (operation != nullptr) conclude(*operation);
}

void CollectiveRunner::abort(Context& context, const Error& error, bool tell) {
    end_from(context, context.collectives.first, error, tell);
}

void CollectiveRunner::close(Context& context, const std::optional<Error>& why) {
    const auto me = context.me.value();
    std::string text = why ? fmt::format("rank {} left: {}", me, why->cause())
                           : fmt::format("rank {} closed its node", me);
    end_from(context, context.collectives.first,
             Error(Errc::closed, std::move(text), {.rank = public_rank(context.me)}));
}

}  // namespace nexar::engine
