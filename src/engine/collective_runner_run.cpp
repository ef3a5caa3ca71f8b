// Runs the steps of a schedule whose dependencies are met.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "engine/collective_runner.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"

namespace nexar::engine {

using schedule::Kind;
using schedule::Milestone;

namespace {

/// out = incoming op local, or local op incoming.
void fold(const CollectiveOperation& operation, compute::Side side, std::byte* out,
          port::ConstBytes incoming, const std::byte* local) {
    NEXAR_ASSERT(operation.reducer.has_value(), "a reduction has an operator");
    const std::size_t count = incoming.size() / operation.plan->element_bytes();
    if (side == compute::Side::left) {
        operation.reducer->fold(out, incoming.data(), local, count);
    } else {
        operation.reducer->fold(out, local, incoming.data(), count);
    }
}

}  // namespace

void CollectiveRunner::look_at(CollectiveOperation& operation, std::uint32_t step) {
    if (std::exchange(operation.steps[step].queued, true)) return;
    operation.queue.push_back(step);
}

/// Runs all steps that can run. Not reentrant: a step queues the steps that it enables.
void CollectiveRunner::pump(CollectiveOperation& operation) {
    if (operation.pumping) return;
    operation.pumping = true;
    for (std::size_t next = 0; next < operation.queue.size() && !operation.failure; ++next) {
        const std::uint32_t step = operation.queue[next];
        operation.steps[step].queued = false;
        run_step(operation, step);
    }
    operation.queue.clear();
    operation.pumping = false;
    conclude(operation);
}

/// How many bytes from the front of a step may be processed.
std::uint64_t CollectiveRunner::allowed(const CollectiveOperation& operation,
                                        std::uint32_t step) const noexcept {
    const Plan& plan = *operation.plan;
    std::uint64_t bytes = plan.ready(step).bytes;
    for (const std::uint32_t gate : plan.gates(step)) {
        const StepState& before = operation.steps[gate];
        if (!before.finished) bytes = std::min(bytes, before.done);
    }
    return bytes;
}

void CollectiveRunner::run_step(CollectiveOperation& operation, std::uint32_t step) {
    const StepState& state = operation.steps[step];
    if (state.waits != 0 || state.finished) return;
    const std::uint64_t until = allowed(operation, step);
    switch (operation.plan->step(step).kind) {
        case Kind::send:
            return run_send(operation, step, until);
        case Kind::receive_copy:
        case Kind::receive_reduce:
            return run_receive(operation, step, until);
        case Kind::copy:
        case Kind::reduce:
            return run_local(operation, step, until);
    }
}

void CollectiveRunner::run_local(CollectiveOperation& operation, std::uint32_t step,
                                 std::uint64_t until) {
    const Plan& plan = *operation.plan;
    const schedule::Step& what = plan.step(step);
    const std::uint32_t element = plan.element_bytes();
    const RunMemory& memory = operation.memory;
    std::uint64_t at = operation.steps[step].done;
    while (at < until) {
        const port::Bytes from = memory.at(what.from, at, until - at, element);
        const port::Bytes into = memory.at(what.into, at, from.size(), element);
        if (what.kind == Kind::copy) {
            std::memcpy(into.data(), from.data(), into.size());
            at += into.size();
            continue;
        }
        const port::Bytes local = memory.at(what.local, at, into.size(), element);
        fold(operation, what.side, into.data(), from.first(local.size()), local.data());
        at += local.size();
    }
    came_so_far(operation, step, until);
}

/// Called when a step has its bytes up to `done`. Steps that follow it piece by piece advance by
/// whole segments: not with each packet, and never by part of an element.
void CollectiveRunner::came_so_far(CollectiveOperation& operation, std::uint32_t step,
                                   std::uint64_t done) {
    StepState& state = operation.steps[step];
    const Plan::PlannedStep& plan = operation.plan->ready(step);
    if (done == plan.bytes) return finish_step(operation, step);
    if (plan.segment == 0) return;
    const std::uint64_t whole = done - done % plan.segment;
    if (whole == state.done) return;
    state.done = whole;
    for (const Plan::After& after : operation.plan->after(step)) {
        if (after.piecewise) look_at(operation, after.step);
    }
}

void CollectiveRunner::happened(CollectiveOperation& operation, std::uint32_t step,
                                Milestone event) {
    for (const Plan::After& after : operation.plan->after(step)) {
        if (after.event != event) continue;
        if (!after.piecewise) {
            NEXAR_ASSERT(operation.steps[after.step].waits > 0);
            --operation.steps[after.step].waits;
        }
        look_at(operation, after.step);
    }
}

/// Called when a step is done. The memory of a send is then free too.
void CollectiveRunner::finish_step(CollectiveOperation& operation, std::uint32_t step) {
    StepState& state = operation.steps[step];
    NEXAR_ASSERT(!state.finished && operation.unfinished > 0);
    state.finished = true;
    state.done = operation.plan->ready(step).bytes;
    --operation.unfinished;
    happened(operation, step, Milestone::finished);
    if (operation.plan->step(step).kind == Kind::send)
        happened(operation, step, Milestone::released);
}

void CollectiveRunner::run_send(CollectiveOperation& operation, std::uint32_t step,
                                std::uint64_t until) {
    StepState& state = operation.steps[step];
    const Plan& plan = *operation.plan;
    const std::uint64_t bytes = plan.ready(step).bytes;
    if (state.send != nullptr) {
        CollectiveSend& send = *state.send;
        if (until == send.ready_bytes) return;
        send.ready_bytes = until;
        send.wake();
        return;
    }
    // A message on the lane is written as a whole.
    const bool whole = bytes <= operation.context->collectives.profile.eager_bytes;
    if (whole ? until != bytes : until == 0) return;
    NEXAR_ASSERT(operation.sends_used < operation.sends_room);
    CollectiveSend& send = operation.sends[operation.sends_used++];
    const schedule::Step& what = plan.step(step);
    send.operation = &operation;
    send.step = step;
    send.pair = operation.context->pairs[what.peer];
    send.bytes = bytes;
    send.ready_bytes = until;
    send.content.clear();
    for (std::uint64_t at = 0; at < bytes;) {
        const port::Bytes piece =
            operation.memory.at(what.from, at, bytes - at, plan.element_bytes());
        send.content.emplace_back(piece);
        at += piece.size();
    }
    state.send = &send;
    enqueue(send);
}

void CollectiveRunner::run_receive(CollectiveOperation& operation, std::uint32_t step,
                                   std::uint64_t until) {
    StepState& state = operation.steps[step];
    if (!state.arrived) return;
    if (state.in == nullptr) {
        if (until != operation.plan->ready(step).bytes) return;
        const std::vector<std::byte> kept = std::exchange(state.kept, {});
        return land_whole(operation, step, kept);
    }
    if (state.in->stream == nullptr || until == 0) return;
    state.in->stream->open();
}

/// Processes a complete message of a step that can run.
void CollectiveRunner::land_whole(CollectiveOperation& operation, std::uint32_t step,
                                  port::ConstBytes bytes) {
    const schedule::Step& what = operation.plan->step(step);
    const std::uint32_t element = operation.plan->element_bytes();
    for (std::uint64_t at = 0; !bytes.empty();) {
        port::Bytes into = operation.memory.at(what.into, at, bytes.size(), element);
        if (what.kind == Kind::receive_reduce) {
            const port::Bytes local = operation.memory.at(what.local, at, into.size(), element);
            into = into.first(local.size());
            fold(operation, what.side, into.data(), bytes.first(into.size()), local.data());
        } else {
            std::memcpy(into.data(), bytes.data(), into.size());
        }
        at += into.size();
        bytes = bytes.subspan(into.size());
    }
    finish_step(operation, step);
}

std::size_t CollectiveIn::write(std::uint64_t offset, port::ConstBytes from) noexcept {
    return runner->stream_bytes(*this, offset, from);
}

/// Takes bytes of a message on a stream as far as its step can use them now.
std::size_t CollectiveRunner::stream_bytes(CollectiveIn& in, std::uint64_t offset,
                                           port::ConstBytes from) {
    if (in.operation == nullptr) return 0;
    CollectiveOperation& operation = *in.operation;
    StepState& state = operation.steps[in.step];
    if (state.waits != 0 || operation.failure) return 0;
    const std::uint64_t until = allowed(operation, in.step);
    if (offset >= until) return 0;
    const auto taken =
        static_cast<std::size_t>(std::min<std::uint64_t>(from.size(), until - offset));
    land(in, offset, from.first(taken));
    if (offset + taken == in.bytes) {
        in.complete = true;
        in.operation = nullptr;
        in.fold.reset();
        state.in = nullptr;
        NEXAR_ASSERT(operation.links > 0);
        --operation.links;
    }
    came_so_far(operation, in.step, offset + taken);
    pump(operation);
    return taken;
}

/// Copies or folds bytes to their place, straight from the link's memory.
void CollectiveRunner::land(CollectiveIn& in, std::uint64_t offset, port::ConstBytes bytes) {
    CollectiveOperation& operation = *in.operation;
    const schedule::Step& what = operation.plan->step(in.step);
    const std::uint32_t element = operation.plan->element_bytes();
    while (!bytes.empty()) {
        if (what.kind == Kind::receive_copy) {
            const port::Bytes into = operation.memory.at(what.into, offset, bytes.size(), element);
            std::memcpy(into.data(), bytes.data(), into.size());
            offset += into.size();
            bytes = bytes.subspan(into.size());
            continue;
        }
        if (offset == in.fold_end) {
            NEXAR_ASSERT(operation.reducer.has_value(), "a reduction has an operator");
            const std::uint64_t rest = in.header.size - offset;
            const port::Bytes into = operation.memory.at(what.into, offset, rest, element);
            const port::Bytes local = operation.memory.at(what.local, offset, into.size(), element);
            in.fold.emplace(*operation.reducer, into.data(), local.data(), local.size() / element,
                            what.side);
            in.fold_begin = offset;
            in.fold_end = offset + local.size();
        }
        const auto now =
            static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), in.fold_end - offset));
        NEXAR_ASSERT(in.fold.has_value());
        const auto fed = in.fold->feed(offset - in.fold_begin, bytes.first(now));
        NEXAR_ASSERT(fed.has_value(), "the bytes of a stream arrive once and in order");
        offset += now;
        bytes = bytes.subspan(now);
    }
}

}  // namespace nexar::engine
