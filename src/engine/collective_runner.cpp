#include "engine/collective_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/mix.hpp"
#include "base/try.hpp"
#include "engine/collective_words.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"
#include "schedule/algorithm.hpp"

namespace nexar::engine {

namespace {

schedule::Workload workload_of(const CollectiveOperation& operation, std::uint32_t world) {
    const bool known = knows_all_counts(operation.terms);
    return {.operation = operation.terms.what,
            .world = world,
            .count = known ? operation.chunks.total() : 0,
            .largest = known ? operation.chunks.largest() : 0,
            .element_bytes = operation.terms.element_bytes,
            .commutative = !operation.reducer || operation.reducer->commutative(),
            .has_counts = operation.terms.has_counts,
            .begins_late = operation.begins_late};
}

schedule::Request request_of(const Context& context, const CollectiveOperation& operation) {
    schedule::Request request;
    request.operation = operation.terms.what;
    request.world = static_cast<std::uint32_t>(context.pairs.size());
    request.rank = context.me.value();
    request.root = operation.terms.root;
    request.in_place = operation.in_place;
    request.chunks = operation.chunks;
    request.receives = operation.receives;
    request.links = context.collectives.profile.links;
    return request;
}

std::shared_ptr<const Plan> plan_of(const schedule::Algorithm& algorithm,
                                    const schedule::Request& request, std::uint32_t element_bytes) {
    schedule::Schedule schedule = algorithm.build(request);
    if (algorithm.traits.medium == schedule::Medium::messages) {
        return std::make_shared<const Plan>(std::move(schedule), element_bytes);
    }
    return std::make_shared<const Plan>(MemoryPlan(schedule, algorithm, request, element_bytes));
}

}  // namespace

/// Chooses the algorithm and makes its plan, or takes both from the cache.
Result<void> CollectiveRunner::plan(Context& context, CollectiveOperation& operation) {
    const schedule::Workload workload =
        workload_of(operation, static_cast<std::uint32_t>(context.pairs.size()));
    const PlanCache::Key key{.operation = workload.operation,
                             .root = operation.terms.root,
                             .count = workload.count,
                             .element_bytes = workload.element_bytes,
                             .commutative = workload.commutative,
                             .in_place = operation.in_place};
    PlanCache& cache = context.collectives.plans;
    const bool cached =
        !workload.has_counts && !workload.begins_late && !operation.terms.agrees_on_memory;
    const PlanCache::Entry* found = cached ? cache.find(key) : nullptr;
    PlanCache::Entry made;
    if (found == nullptr) {
        schedule::Request request = request_of(context, operation);
        schedule::Profile profile = context.collectives.profile;
        // An algorithm that is forced may need the memory that the ranks are about to agree on.
        if (operation.terms.agrees_on_memory) profile.forced.clear();
        NEXAR_TRY_VALUE(choice, schedule::choose(workload, profile));
        made.choice = choice;
        made.result = result_of(request);
        request.segment = choice.segment;
        schedule::follow(request, profile.hops, *choice.algorithm);
        made.plan = plan_of(*choice.algorithm, request, workload.element_bytes);
        if (cached) cache.add(key, made);
        found = &made;
    }
    if (operation.plan != found->plan) operation.plan = found->plan;
    operation.result = found->result;
    operation.terms.algorithm = found->choice.algorithm->name;
    operation.terms.segment = found->choice.segment;
    return {};
}

/// Assigns memory to the plan: the user's buffers, and scratch from the pool.
Result<void> CollectiveRunner::lay_out(CollectiveOperation& operation) {
    const Plan& plan = *operation.plan;
    for (const schedule::Space space :
         {schedule::Space::input, schedule::Space::output, schedule::Space::scratch}) {
        operation.memory.space(space).clear();
    }
    for (const port::Bytes piece : operation.input) {
        operation.memory.space(schedule::Space::input).add(piece);
    }
    for (const port::Bytes piece : operation.output) {
        operation.memory.space(schedule::Space::output).add(piece);
    }
    operation.steps.clear();
    if (plan.memory() != nullptr) {
        operation.unfinished = 1;
        return {};
    }
    if (plan.scratch_bytes() != 0) {
        NEXAR_TRY_VALUE(scratch, pool_->checkout(static_cast<std::size_t>(plan.scratch_bytes())));
        operation.scratch = std::move(scratch);
        operation.memory.space(schedule::Space::scratch).add(operation.scratch.span());
    }
    operation.steps.resize(plan.size());
    for (std::uint32_t i = 0; i < plan.size(); ++i) {
        operation.steps[i].waits = plan.ready(i).waits;
    }
    operation.unfinished = plan.size();
    if (operation.sends_room < plan.sends()) {
        operation.sends = std::make_unique<CollectiveSend[]>(plan.sends());
        operation.sends_room = plan.sends();
    }
    return {};
}

namespace {

std::uint64_t hash_of(const CollectiveTerms& terms, const schedule::Chunks& chunks) {
    std::uint64_t all = 0;
    const auto add = [&](std::uint64_t value) { all = mixed(all ^ value) + value; };
    add(static_cast<std::uint64_t>(terms.what));
    add(static_cast<std::uint64_t>(terms.dtype));
    add(terms.element_bytes);
    add(terms.root);
    add(terms.segment);
    add(terms.has_counts ? 1 : 0);
    add(terms.exchanges_counts ? 1 : 0);
    for (const char letter : terms.operator_name) add(static_cast<unsigned char>(letter));
    for (const char letter : terms.algorithm) add(static_cast<unsigned char>(letter));
    if (!knows_all_counts(terms)) return all;
    add(terms.count);
    if (terms.has_counts) {
        for (std::uint32_t i = 0; i < chunks.world(); ++i) add(chunks.count(i));
    }
    return all;
}

/// True if hash_of() is certainly the same for both.
bool same_call(const CollectiveTerms& a, const CollectiveTerms& b) noexcept {
    const auto same_text = [](std::string_view one, std::string_view other) {
        return one.data() == other.data() && one.size() == other.size();
    };
    return a.what == b.what && a.dtype == b.dtype && a.element_bytes == b.element_bytes &&
           a.root == b.root && a.segment == b.segment && !a.has_counts && !b.has_counts &&
           a.exchanges_counts == b.exchanges_counts && a.count == b.count &&
           same_text(a.operator_name, b.operator_name) && same_text(a.algorithm, b.algorithm);
}

}  // namespace

/// Programs repeat calls, so the hash of the last one is kept.
std::uint64_t CollectiveRunner::fingerprint_of(const CollectiveOperation& operation) {
    ContextCollectives& here = operation.context->collectives;
    if (!same_call(here.last_call, operation.terms)) {
        here.last_hash = hash_of(operation.terms, operation.chunks);
        here.last_call = operation.terms;
    }
    return mixed(mixed(here.profile_hash ^ operation.number) + here.last_hash);
}

/// "all_reduce f32 x 1024 sum|ring with profile 0f..., call 12...": the part after the bar matters
/// only for calls that are equal before it. Calls that differ have different descriptions.
std::string CollectiveRunner::description_of(const CollectiveTerms& terms) {
    std::string text = call_text(terms) + fmt::format("|{}", terms.algorithm);
    if (terms.segment != 0) text += fmt::format(" in segments of {}", terms.segment);
    return text +
           fmt::format(" with profile {:016x}, call {:016x}", terms.profile, terms.fingerprint);
}

void CollectiveRunner::start(Context& context, CollectiveOperation& operation) {
    take_number(context, operation);
    run(context, operation);
}

void CollectiveRunner::reserve(Context& context, CollectiveOperation& operation) {
    take_number(context, operation);
    operation.begins_late = true;
    operation.plan.reset();
    *context.collectives.past_call(operation.number) = {};
    // Later operations must leave the reserves to this one: the peer may have to finish it first.
    for (Pair* const pair : context.pairs) {
        if (pair != nullptr) add_unsent(*pair, operation.number, 1);
    }
}

void CollectiveRunner::begin(CollectiveOperation& operation) {
    Context& context = *operation.context;
    if (context.over) return abandon(operation, *context.over);
    if (const auto& halted = services_->halted()) return abandon(operation, *halted);
    forget_places(context, operation.number);
    run(context, operation);
    drain_all(context);
}

void CollectiveRunner::take_number(Context& context, CollectiveOperation& operation) {
    ContextCollectives& here = context.collectives;
    operation.runner = this;
    operation.number = here.next++;
    operation.reserved = true;
    operation.begins_late = false;
    operation.started = now_;
    operation.failure.reset();
    operation.links = 0;
    here.running.push_back(&operation);
}

void CollectiveRunner::reset(CollectiveOperation& operation) noexcept {
    operation.reserved = false;
    operation.differs = false;
    operation.sends_used = 0;
    operation.queue.clear();
    operation.silent.reset();
}

void CollectiveRunner::run(Context& context, CollectiveOperation& operation) {
    reset(operation);
    const auto laid_out = [&]() -> Result<void> {
        NEXAR_TRY(plan(context, operation));
        return lay_out(operation);
    }();
    operation.terms.profile = context.collectives.profile_hash;
    operation.terms.fingerprint = laid_out ? fingerprint_of(operation) : 0;
    remember(context, operation);
    const bool in_memory = laid_out && operation.plan->memory() != nullptr;
    if (in_memory && run_at_once(context, operation)) return;
    list(operation);
    if (!laid_out) {
        operation.plan.reset();
        operation.unfinished = 1;
        drop_early(context, operation.number);
        return fail(operation, laid_out.error());
    }
    if (in_memory) return enter_memory(context, operation);
    enter(context, operation);
}

/// Adds an operation to those that have deadlines.
void CollectiveRunner::list(CollectiveOperation& operation) {
    operation.deadline = operation.expiry();
    operation.warn = now_ + limits_.warn_after;
    operation.compare_after = limits_.compare_after;
    operation.compare = now_ + operation.compare_after;
    running_.push_back(operation);
    operation.listed = true;
    be_due(operation);
}

/// Keeps the terms of a call, to compare them with the calls of peers.
void CollectiveRunner::remember(Context& context, const CollectiveOperation& operation) {
    PastCollective* const found = context.collectives.past_call(operation.number);
    if (found == nullptr) return;  // it was reserved, and many later calls were made
    PastCollective& past = *found;
    past.terms = operation.terms;
    past.ended_well = past.difference_told = false;
    past.sent_to.clear();
    if (operation.plan == nullptr || knows_all_counts(operation.terms)) return;
    past.sent_to.resize(context.pairs.size());
    for (const Plan::Outgoing& outgoing : operation.plan->outgoing()) {
        past.sent_to[outgoing.peer] = true;
    }
}

/// Begins the operation: takes the messages that arrived early, then runs its steps.
void CollectiveRunner::enter(Context& context, CollectiveOperation& operation) {
    const Plan& plan = *operation.plan;
    for (const Plan::Outgoing& outgoing : plan.outgoing()) {
        add_unsent(*context.pairs[outgoing.peer], operation.number, outgoing.messages);
    }
    // No step runs before all are queued: a step that ends the operation must be the last.
    operation.pumping = true;
    for (std::uint32_t i = 0; i < plan.size(); ++i) {
        if (operation.steps[i].waits == 0) look_at(operation, i);
    }
    if (!context.collectives.early.empty()) take_early(context, operation);
    if (!operation.failure) look_for_lost(context, operation);
    operation.pumping = false;
    pump(operation);
}

void CollectiveRunner::take_early(Context& context, CollectiveOperation& operation) {
    EarlyOperation known = called(context, operation.number);
    for (EarlyCollective& message : known.messages) {
        give_back(*message.pair, message.header);
        if (message.stream != nullptr) message.stream->early = false;
        std::optional<std::uint32_t> step;
        if (!known.aborted) step = accept(operation, *message.pair, message.header);
        if (message.stream == nullptr) {
            if (step) take(operation, *step, message.payload);
        } else if (step) {
            take(operation, *step, *message.stream);
        } else {
            drop(*message.stream);
        }
    }
    if (known.aborted) fail(operation, *known.aborted, false);
}

/// Drops the messages that arrived for an operation that cannot begin.
void CollectiveRunner::drop_early(Context& context, std::uint64_t number) {
    const EarlyOperation known = called(context, number);
    for (const EarlyCollective& message : known.messages) {
        give_back(*message.pair, message.header);
        if (message.stream == nullptr) continue;
        message.stream->early = false;
        drop(*message.stream);
    }
}

/// Ends the operation if it needs a member that is gone.
void CollectiveRunner::look_for_lost(Context& context, CollectiveOperation& operation) {
    if (const Error* const known = context.collectives.heard_of(operation.number)) {
        return fail(operation, *known, false);
    }
    const Plan& plan = *operation.plan;
    for (std::uint32_t i = 0; i < plan.size(); ++i) {
        const schedule::Step& step = plan.step(i);
        if (!schedule::is_message(step.kind) || operation.steps[i].arrived) continue;
        const Pair& pair = *context.pairs[step.peer];
        if (!pair.peer->lost) continue;
        return end_from(context, operation.number,
                        pair.peer->lost->within({.rank = public_rank(pair.rank)}));
    }
}

/// Ends the operation when nothing is left to do.
void CollectiveRunner::conclude(CollectiveOperation& operation) {
    if (operation.links != 0 || operation.pumping) return;
    if (operation.unfinished != 0 && !operation.failure) return;
    if (!operation.failure && operation.reducer) {
        const std::uint32_t element = operation.plan->element_bytes();
        const std::uint64_t bytes = operation.result.count * element;
        for (std::uint64_t at = 0; at < bytes;) {
            const port::Bytes piece =
                operation.memory.at(operation.result, at, bytes - at, element);
            operation.reducer->finish(piece.data(), piece.size() / element,
                                      static_cast<std::uint32_t>(operation.context->pairs.size()));
            at += piece.size();
        }
    }
    ContextCollectives& here = operation.context->collectives;
    if (PastCollective* const past = here.past_call(operation.number)) {
        past->ended_well = !operation.failure;
    }
    if (std::exchange(operation.listed, false)) running_.erase(operation);
    if (!operation.scratch.span().empty()) operation.scratch = {};
    retire(operation);
}

/// Removes the operation from the communicator's table and finishes it.
void CollectiveRunner::retire(CollectiveOperation& operation) {
    ContextCollectives& here = operation.context->collectives;
    here.running[static_cast<std::size_t>(operation.number - here.first)] = nullptr;
    while (!here.running.empty() && here.running.front() == nullptr) {
        // A deque that grows at one end and shrinks at the other allocates now and then.
        if (here.running.size() == 1) {
            here.running.pop_back();
        } else {
            here.running.pop_front();
        }
        ++here.first;
    }
    operation.error = operation.failure;
    services_->finish(operation);
}

void CollectiveRunner::end(Context& context) {
    NEXAR_ASSERT(context.collectives.running.empty(), "a communicator must outlive its operations");
    context.collectives.early.clear();
    for (Pair* const pair : context.pairs) {
        if (pair == nullptr || !pair->collectives) continue;
        PairCollectives& here = *pair->collectives;
        while (!here.streams.empty()) drop(*here.streams.begin()->second);
        Peer& peer = *pair->peer;
        peer.transfers.refuse_early(TransferKind::collective, context.id);
        if (std::exchange(pair->collectives_blocked, false)) {
            peer.collectives.blocked.erase(*pair);
        }
        if (peer.collectives.on_lane.pair == pair) peer.collectives.on_lane.pair = nullptr;
        if (!pair->begun_out) here.said.clear();
    }
}

}  // namespace nexar::engine
