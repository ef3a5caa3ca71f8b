#include "engine/memory_executor.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::engine {

namespace {

// A rank that waits looks only now and then for signs that another one gave up.
constexpr std::uint32_t kLooks = 64;

}  // namespace

MemoryExecutor::MemoryExecutor(MemorySegments segments, const BufferFinder* buffers)
    : segments_(std::move(segments)),
      buffers_found_(buffers),
      known_(segments_.world()),
      seen_(segments_.world()) {}

void MemoryExecutor::begin(const MemoryCall& call) noexcept {
    NEXAR_ASSERT(state_ != State::waiting);
    call_ = call;
    state_ = State::waiting;
    stuck_ = State::idle;
    announced_ = false;
    blocked_ = nullptr;
    copies_ = finishing_ = false;
    unseen_.reset();
    first_ = next_buffer_;
    if (!call.plan->in_slot()) begin_rounds();
    next_put_ = round_ = last_ = 0;
    phase_ = 0;
    group_ = peer_ = 0;
}

void MemoryExecutor::begin_rounds() noexcept {
    const MemoryPlan& plan = *call_.plan;
    copies_ = !shows(0) || (plan.stages() > 1 && !shows(1));
    if (copies_) next_buffer_ = buffer_of(next_buffer_, plan.rounds());
    if (call_.shown != nullptr) {
        shown_use_ = {.key = last_read_key(), .readers = plan.readers(), .reader = plan.reader()};
    }
}

std::size_t MemoryExecutor::buffer_of(std::uint64_t first, std::uint64_t round) const noexcept {
    return static_cast<std::size_t>((first + round) % MemoryLayout::kBuffers);
}

MemoryExecutor::State MemoryExecutor::advance() {
    if (state_ != State::waiting) return state_;
    if (stuck_ != State::idle) return stuck_;
    const MemoryPlan& plan = *call_.plan;
    if (plan.empty()) {
        // Others may wait for a sign that this rank needs nothing from them.
        if (plan.extent_bytes() > 0) publish(kDone);
        return state_ = State::done;
    }
    if (next_put_ == 0 && !put_round()) return state_;
    while (round_ < plan.rounds()) {
        if (phase_ == 0) {
            if (next_put_ < plan.rounds() && !put_round()) return state_;
            phase_ = 1;
            last_ = round_;
        }
        if (!run_phase()) return stuck_ != State::idle ? stuck_ : state_;
        if (phase_ < plan.stages()) publish(publish_tick(last_, phase_, plan.stages()));
        group_ = peer_ = 0;
        if (++phase_ <= plan.stages()) continue;
        phase_ = 0;
        round_ = last_ + 1;
    }
    if (!plan.in_slot() && !finish_rounds()) return state_;
    return state_ = State::done;
}

/// Runs the first phase of the next round. Returns false if its slot or buffer is still in use.
bool MemoryExecutor::put_round() {
    const MemoryPlan& plan = *call_.plan;
    Use& slot = slots_[call_.number % 2];
    if (next_put_ == 0 && !is_free(slot)) return false;
    std::byte* target = nullptr;
    if (plan.in_slot()) {
        target =
            segments_.own(layout().slot(call_.number) + MemoryLayout::payload(plan.extent_bytes()));
    } else if (copies_) {
        const std::size_t i = buffer_of(first_, next_put_);
        if (!is_free(buffers_[i])) return false;
        target = segments_.own(layout().buffer(i));
        buffers_[i] = {.key = progress_key(call_.number, after_round(next_put_, plan.stages())),
                       .readers = plan.readers(),
                       .reader = plan.reader()};
    }
    if (!shows(0)) {
        for (const MemoryPlan::Group& group : plan.phase(0)) {
            run_group(group, next_put_, next_put_, target);
        }
    }
    if (next_put_ == 0) {
        slot = {.key = progress_key(call_.number, kDone),
                .readers = plan.readers(),
                .reader = plan.reader()};
        publish_slot();
    }
    if (!plan.in_slot()) {
        const std::uint64_t tick = publish_tick(next_put_, 0, plan.stages());
        if (copies_) {
            segments_.store(MemoryLayout::stamp(buffer_of(first_, next_put_), 0),
                            progress_key(call_.number, tick));
        }
        publish(tick);
    }
    ++next_put_;
    return true;
}

/// Runs the groups of the phase as far as their data is there. Returns false if some is missing.
bool MemoryExecutor::run_phase() {
    const MemoryPlan& plan = *call_.plan;
    const auto groups = plan.phase(phase_);
    std::byte* put_at = nullptr;
    if (!plan.in_slot() && (phase_ == plan.stages() || !shows(phase_))) {
        put_at = segments_.own(layout().buffer(buffer_of(first_, round_)));
    }
    for (; group_ < groups.size(); ++group_, peer_ = 0) {
        const MemoryPlan::Group& group = groups[group_];
        const std::uint64_t begin = round_ * group.segment;
        const bool in_round = round_ == 0 || (group.segment != 0 && begin < group.bytes);
        if (!in_round) continue;
        const auto peers = plan.peers(group);
        for (; peer_ < peers.size(); ++peer_) {
            if (ready(peers[peer_]) != Ready::yes) return false;
        }
        if (phase_ == 1 && group_ == 0 && !plan.in_slot()) {
            last_ = round_ + rounds_together() - 1;
            while (next_put_ < plan.rounds() && next_put_ < last_ + 2) put_round();
        }
        if (group.bytes > 0) run_group(group, round_, last_, put_at);
    }
    if (!still_shown()) return false;
    if (phase_ < plan.stages() && copies_) {
        segments_.store(MemoryLayout::stamp(buffer_of(first_, round_), phase_),
                        progress_key(call_.number, publish_tick(round_, phase_, plan.stages())));
    }
    return true;
}

void MemoryExecutor::publish_slot() noexcept {
    const std::size_t slot = layout().slot(call_.number);
    segments_.store(slot + MemoryLayout::kFingerprint, call_.fingerprint);
    segments_.store(slot + MemoryLayout::kSize, call_.plan->extent_bytes());
    if (!call_.plan->in_slot()) {
        segments_.store(slot + MemoryLayout::kFirst, first_);
        std::size_t at = slot + MemoryLayout::kShown;
        for (const ShownVector& shown : call_.shown != nullptr ? *call_.shown : ShownVectors{}) {
            segments_.store(at, shown.name);
            segments_.store(at + 8, shown.offset);
            at += 16;
        }
    }
    segments_.store(slot, call_.number + 1, std::memory_order_release);
    published_ = true;
}

void MemoryExecutor::publish(std::uint64_t tick) noexcept {
    segments_.store(0, progress_key(call_.number, tick), std::memory_order_release);
    published_ = true;
}

std::uint64_t MemoryExecutor::refresh(std::uint32_t rank) noexcept {
    Known& known = known_[rank];
    // A rank that goes backwards breaks the rules; what it showed before still counts.
    return known.progress = std::max(known.progress, segments_.progress(rank));
}

/// Returns true if this rank may overwrite a slot or buffer.
bool MemoryExecutor::is_free(Use& use) noexcept {
    const auto passed = [&](std::uint32_t rank) {
        return known_[rank].progress >= use.key || refresh(rank) >= use.key;
    };
    bool all = true;
    if (use.readers == MemoryPlan::Readers::one) {
        all = passed(use.reader);
    } else if (use.readers == MemoryPlan::Readers::several) {
        for (std::uint32_t rank = 0; rank < segments_.world(); ++rank) {
            if (rank != segments_.me()) all = all && passed(rank);
        }
    }
    blocked_ = all ? nullptr : &use;
    if (all) {
        use.readers = MemoryPlan::Readers::none;
        return true;
    }
    // Ranks may wait in this place for each other: each shows that it has left earlier operations.
    if (next_put_ == 0 && !std::exchange(announced_, true)) publish(kEntered);
    return false;
}

/// Whether the data of a rank that the current phase reads is there.
MemoryExecutor::Ready MemoryExecutor::ready(std::uint32_t rank) noexcept {
    Ready found = greet(rank);
    if (found == Ready::yes && !call_.plan->in_slot()) found = ready_in_round(rank);
    return found;
}

/// Waits for the header of the rank and compares its call with this one.
MemoryExecutor::Ready MemoryExecutor::greet(std::uint32_t rank) noexcept {
    Known& known = known_[rank];
    const std::uint64_t wanted = call_.number + 1;
    if (known.greeted == wanted) return Ready::yes;
    const std::size_t slot = layout().slot(call_.number);
    std::uint64_t word = segments_.load(rank, slot, std::memory_order_acquire);
    if (word < wanted) {
        if (++looks_ % kLooks != 0 || refresh(rank) < progress_key(call_.number, kGaveUp)) {
            return Ready::no;
        }
        // It is in a later operation, or gave this one up. It may have published in between.
        word = segments_.load(rank, slot, std::memory_order_acquire);
    }
    if (word != wanted) {
        stop(State::passed, rank);
        return Ready::never;
    }
    if (segments_.load(rank, slot + MemoryLayout::kFingerprint) != call_.fingerprint ||
        segments_.load(rank, slot + MemoryLayout::kSize) != call_.plan->extent_bytes()) {
        stop(State::differs, rank);
        return Ready::never;
    }
    if (!call_.plan->in_slot()) {
        if (const Ready seen = see(rank); seen != Ready::yes) return seen;
    }
    known.first = segments_.load(rank, slot + MemoryLayout::kFirst) % MemoryLayout::kBuffers;
    known.greeted = wanted;
    known.progress = std::max(known.progress, progress_key(call_.number, kEntered));
    return Ready::yes;
}

/// What a rank must have published before this phase can read it, in this round.
std::uint64_t MemoryExecutor::wanted_key() const noexcept {
    return progress_key(call_.number, publish_tick(last_, phase_ - 1, call_.plan->stages()));
}

MemoryExecutor::Ready MemoryExecutor::ready_in_round(std::uint32_t rank) noexcept {
    const std::uint32_t stage = phase_ - 1;
    // A shown vector is complete from the start; still_shown() notices if its owner gives up.
    const bool shown = seen_[rank].at(stage).data != nullptr;
    if (shown && stage == 0) return Ready::yes;
    const std::uint64_t wanted = wanted_key();
    std::uint64_t progress = known_[rank].progress;
    if (progress < wanted) progress = refresh(rank);
    if (progress < wanted) return Ready::no;
    // Up to its end the operation itself shows that the data is there.
    if (progress <= progress_key(call_.number, kDone) || shown) return Ready::yes;
    const std::size_t buffer = buffer_of(known_[rank].first, round_);
    if (segments_.load(rank, MemoryLayout::stamp(buffer, stage)) == wanted) return Ready::yes;
    stop(State::passed, rank);
    return Ready::never;
}

void MemoryExecutor::stop(State state, std::uint32_t rank) noexcept {
    stuck_ = state;
    culprit_ = rank;
}

void MemoryExecutor::give_up() noexcept {
    if (state_ != State::waiting) return;
    publish(kGaveUp);
    // The caller may write to its memory from now on: a reader that sees that must also see this.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    look_away();
    state_ = State::idle;
}

bool MemoryExecutor::needs(std::uint32_t rank) const noexcept {
    if (state_ != State::waiting) return false;
    const MemoryPlan& plan = *call_.plan;
    if (call_.shown != nullptr && reads_shown(rank) && segments_.progress(rank) < shown_use_.key) {
        return true;
    }
    if (finishing_) return false;
    const bool puts_left = next_put_ < plan.rounds();
    if (puts_left && std::ranges::binary_search(plan.partners(), rank)) return true;
    const bool more = round_ + 1 < plan.rounds();
    for (std::uint32_t phase = 1; phase <= plan.stages(); ++phase) {
        if (phase < phase_ && !more) continue;
        const auto groups = plan.phase(phase);
        const std::size_t done = phase == phase_ && !more ? group_ : 0;
        for (const MemoryPlan::Group& group : groups.subspan(std::min(done, groups.size()))) {
            if (std::ranges::find(plan.peers(group), rank) == plan.peers(group).end()) continue;
            if (known_[rank].greeted != call_.number + 1 && !has_published(rank)) return true;
            if (rank == unseen_) return true;
            if (seen_[rank][0].data != nullptr && phase == 1) continue;
            const std::uint64_t last = progress_key(
                call_.number, publish_tick(plan.rounds() - 1, phase - 1, plan.stages()));
            if (!plan.in_slot() && segments_.progress(rank) < last) return true;
        }
    }
    return false;
}

bool MemoryExecutor::awaits(std::uint32_t rank) const noexcept {
    if (state_ != State::waiting || rank == segments_.me()) return false;
    if (stuck_ != State::idle) return rank == culprit_;
    if (blocked_ != nullptr) {
        const bool reads =
            blocked_->readers == MemoryPlan::Readers::several || blocked_->reader == rank;
        return reads && segments_.progress(rank) < blocked_->key;
    }
    if (unseen_) return rank == unseen_;
    if (phase_ == 0) return false;
    const MemoryPlan& plan = *call_.plan;
    const auto groups = plan.phase(phase_);
    for (const MemoryPlan::Group& group : groups.subspan(std::min(group_, groups.size()))) {
        if (std::ranges::find(plan.peers(group), rank) == plan.peers(group).end()) continue;
        if (known_[rank].greeted != call_.number + 1 && !has_published(rank)) return true;
        return !plan.in_slot() && segments_.progress(rank) < wanted_key();
    }
    return false;
}

}  // namespace nexar::engine
