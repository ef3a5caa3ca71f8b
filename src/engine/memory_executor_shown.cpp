// Vectors in shared buffers, which other ranks read in place.

#include <algorithm>
#include <atomic>
#include <utility>

#include "engine/memory_executor.hpp"

namespace nexar::engine {

namespace {

// What a rank folds before it lets the others copy the result: small enough that the result is
// still in its cache, large enough that waiting for each other costs little.
constexpr std::uint64_t kPieceBytes = std::uint64_t{128} << 10U;

}  // namespace

/// Reads where a rank shows its vectors. The rank may write anything there, so every word is read
/// once and checked.
MemoryExecutor::Ready MemoryExecutor::see(std::uint32_t rank) {
    const MemoryPlan& plan = *call_.plan;
    std::array<Seen, MemoryLayout::kStages> seen{};
    for (std::uint32_t stage = 0; stage < plan.stages(); ++stage) {
        const std::size_t at =
            layout().slot(call_.number) + MemoryLayout::kShown + std::size_t{stage} * 16;
        const std::uint64_t name = segments_.load(rank, at);
        const std::uint64_t offset = segments_.load(rank, at + 8);
        // Its owner does not wait for ranks that read nothing there.
        if (name == 0 || plan.reach(rank, stage) == 0) continue;
        if (buffers_found_ != nullptr) seen.at(stage).memory = buffers_found_->find(rank, name);
        if (seen.at(stage).memory == nullptr) {
            // It is on its way, unless the rank has given up.
            if (refresh(rank) > progress_key(call_.number, kDone)) {
                stop(State::passed, rank);
                return Ready::never;
            }
            unseen_ = rank;
            return Ready::no;
        }
        const port::ConstBytes memory = seen.at(stage).memory->bytes();
        const std::uint64_t usable = memory.size() - kBufferTail;
        if (offset > usable || plan.reach(rank, stage) > usable - offset || !plan.aligned(offset)) {
            stop(State::passed, rank);
            return Ready::never;
        }
        seen.at(stage).data = memory.data() + offset;
        sees_ = true;
    }
    unseen_.reset();
    seen_[rank] = std::move(seen);
    return Ready::yes;
}

/// Whether everything that the current phase read in place is data: the ranks that show it have not
/// given up. Otherwise nothing that was made of it is published or returned.
bool MemoryExecutor::all_still_shown() noexcept {
    // After the reads: a rank that reads what a released buffer was overwritten with also sees that
    // its owner gave up, see give_up().
    std::atomic_thread_fence(std::memory_order_acquire);
    for (const std::uint32_t rank : call_.plan->partners()) {
        if (seen_[rank].at(phase_ - 1).data == nullptr) continue;
        // Acquire: this rank may then overwrite what the other one read before it gave up.
        const std::uint64_t word = segments_.load(rank, 0, std::memory_order_acquire);
        if (word <= progress_key(call_.number, kDone)) continue;
        stop(State::passed, rank);
        return false;
    }
    return true;
}

void MemoryExecutor::look_away() noexcept {
    if (!sees_) return;
    sees_ = false;
    for (auto& seen : seen_) seen = {};
}

/// Publishes that this rank has read everything. Returns false while others still read what it
/// shows.
bool MemoryExecutor::finish_rounds() noexcept {
    if (!std::exchange(finishing_, true)) publish(kDone);
    if (call_.shown != nullptr && !is_free(shown_use_)) return false;
    look_away();
    return true;
}

/// How many rounds run without waiting in between, from the current one on. While all ranks show
/// their vectors, nothing has to be copied into the few buffers of a segment.
std::uint64_t MemoryExecutor::rounds_together() const noexcept {
    const MemoryPlan& plan = *call_.plan;
    const bool all =
        plan.stages() == MemoryLayout::kStages && shows(0) && shows(1) &&
        std::ranges::all_of(plan.partners(), [&](std::uint32_t rank) { return shows_all(rank); });
    if (!all) return 1;
    const std::uint64_t segment = plan.phase(1).front().segment;
    const std::uint64_t rounds =
        segment == 0 ? 1 : std::max<std::uint64_t>(1, kPieceBytes / segment);
    return std::min(rounds, plan.rounds() - round_);
}

bool MemoryExecutor::shows_all(std::uint32_t rank) const noexcept {
    return known_[rank].greeted == call_.number + 1 && seen_[rank][0].data != nullptr &&
           seen_[rank][1].data != nullptr;
}

bool MemoryExecutor::reads_shown(std::uint32_t rank) const noexcept {
    if (rank == segments_.me()) return false;
    if (shown_use_.readers == MemoryPlan::Readers::one) return shown_use_.reader == rank;
    return shown_use_.readers == MemoryPlan::Readers::several;
}

/// What the readers of this rank publish once they have read what it shows.
std::uint64_t MemoryExecutor::last_read_key() const noexcept {
    const MemoryPlan& plan = *call_.plan;
    // A rank publishes the second stage of the last round after it has read the first one.
    if (plan.stages() > 1 && !shows(1)) {
        return progress_key(call_.number, publish_tick(plan.rounds() - 1, 1, plan.stages()));
    }
    return progress_key(call_.number, kDone);
}

}  // namespace nexar::engine
