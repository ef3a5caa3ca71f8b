#include "runtime/completion.hpp"

#include "base/assert.hpp"
#include "runtime/completion_waiter.hpp"

namespace nexar::runtime {

void ContinuationQueue::push(Continuation& continuation) noexcept {
    continuation.next_ = nullptr;
    (last_ == nullptr ? first_ : last_->next_) = &continuation;
    last_ = &continuation;
}

Continuation* ContinuationQueue::pop() noexcept {
    Continuation* const oldest = first_;
    if (oldest == nullptr) return nullptr;
    first_ = oldest->next_;
    if (first_ == nullptr) last_ = nullptr;
    return oldest;
}

bool ContinuationQueue::remove(const Continuation& continuation) noexcept {
    Continuation* before = nullptr;
    for (Continuation* at = first_; at != nullptr; before = at, at = at->next_) {
        if (at != &continuation) continue;
        (before == nullptr ? first_ : before->next_) = at->next_;
        if (last_ == at) last_ = before;
        return true;
    }
    return false;
}

bool Completion::then(Continuation& continuation) noexcept {
    std::uintptr_t state = state_.load(std::memory_order_acquire);
    if ((state & kDone) != 0) return false;
    NEXAR_ASSERT((state & kContinued) == 0, "a completion has one continuation at a time");
    continuation_ = &continuation;
    while (!state_.compare_exchange_weak(state, state | kContinued, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
        if ((state & kDone) != 0) return false;
    }
    return true;
}

void Completion::rearm() noexcept {
    const std::uintptr_t state = state_.load(std::memory_order_acquire);
    NEXAR_ASSERT(state == kDone || state == 0, "a pending operation cannot be started again");
    state_.store(0, std::memory_order_relaxed);
}

Completion::Interested Completion::finish() noexcept {
    std::uintptr_t state = state_.load(std::memory_order_acquire);
    for (;;) {
        NEXAR_ASSERT((state & kDone) == 0, "an operation completes once");
        // Read before the exchange: afterwards the owner may have destroyed this.
        Continuation* const next = (state & kContinued) != 0 ? continuation_ : nullptr;
        if (state_.compare_exchange_weak(state, kDone, std::memory_order_acq_rel,
                                         std::memory_order_acquire)) {
            // NOLINTNEXTLINE(performance-no-int-to-ptr): one word holds address and flags.
            return {.waiter = reinterpret_cast<Waiter*>(state & ~kFlags), .continuation = next};
        }
    }
}

void Completion::finish_unshared() noexcept {
    NEXAR_ASSERT(state_.load(std::memory_order_relaxed) == 0, "an operation completes once");
    state_.store(kDone, std::memory_order_release);
}

bool Completion::enlist(Waiter& waiter) noexcept {
    static_assert(alignof(Waiter) > kFlags,
                  "the flags are in the low bits of the waiter's address");
    const auto address = reinterpret_cast<std::uintptr_t>(&waiter);
    std::uintptr_t state = state_.load(std::memory_order_acquire);
    do {
        if ((state & kDone) != 0) return false;
        NEXAR_ASSERT((state & ~kFlags) == 0, "only one thread at a time may wait for a completion");
    } while (!state_.compare_exchange_weak(state, state | address, std::memory_order_acq_rel,
                                           std::memory_order_acquire));
    return true;
}

bool Completion::delist(Waiter& waiter) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(&waiter);
    std::uintptr_t state = state_.load(std::memory_order_acquire);
    do {
        if ((state & kDone) != 0) return false;
        NEXAR_ASSERT((state & ~kFlags) == address, "only the waiting thread can stop waiting");
    } while (!state_.compare_exchange_weak(state, state & kFlags, std::memory_order_acq_rel,
                                           std::memory_order_acquire));
    return true;
}

bool Completion::drop_continuation() noexcept {
    std::uintptr_t state = state_.load(std::memory_order_acquire);
    do {
        if ((state & kContinued) == 0) return false;
    } while (!state_.compare_exchange_weak(state, state & ~kContinued, std::memory_order_acq_rel,
                                           std::memory_order_acquire));
    return true;
}

}  // namespace nexar::runtime
