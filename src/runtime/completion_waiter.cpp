#include "runtime/completion_waiter.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>
#include <thread>

namespace nexar::runtime {

namespace {

// SteadyClock has the same origin as CLOCK_MONOTONIC, which the kernel compares with.
timespec absolute(TimePoint when) noexcept {
    const auto since = std::max(when.time_since_epoch(), Duration::zero());
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since);
    return {.tv_sec = seconds.count(), .tv_nsec = (since - seconds).count()};
}

// Sleeps while `word` has `value`, until woken or the deadline. May return spuriously.
void sleep_while(const FutexWord& word, std::uint32_t value, const timespec* deadline) noexcept {
    static_assert(sizeof(FutexWord) == 4 && FutexWord::is_always_lock_free);
    ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG, value, deadline, nullptr,
              FUTEX_BITSET_MATCH_ANY);
}

}  // namespace

void wake_sleeper(const FutexWord* word) noexcept {
    ::syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT_MAX, nullptr, nullptr, 0);
}

const FutexWord* Waiter::tell() noexcept {
    const FutexWord* const word = &word_;
    const std::uint32_t before = word_.fetch_add(kOneTold, std::memory_order_acq_rel);
    return (before & kSleeping) != 0 ? word : nullptr;
}

const FutexWord* Waiter::grant() noexcept {
    const FutexWord* const word = &word_;
    const std::uint32_t before = word_.fetch_or(kGranted, std::memory_order_acq_rel);
    return (before & kSleeping) != 0 ? word : nullptr;
}

void Waiter::sleep(std::optional<TimePoint> deadline) noexcept {
    const timespec until = absolute(deadline.value_or(TimePoint{}));
    std::uint32_t seen = word_.fetch_or(kSleeping, std::memory_order_acq_rel) | kSleeping;
    while (seen == kSleeping) {
        if (deadline && SteadyClock{}.now() >= *deadline) break;
        sleep_while(word_, seen, deadline ? &until : nullptr);
        seen = word_.load(std::memory_order_acquire);
    }
    word_.fetch_and(~kSleeping, std::memory_order_acq_rel);
}

void Waiter::await_told(std::uint32_t count) const noexcept {
    while (told_count() < count) std::this_thread::yield();
}

void PendingWakes::add(const FutexWord* word) noexcept {
    if (word == nullptr) return;
    if (count_ == words_.size()) {
        wake_sleeper(word);
        return;
    }
    words_[count_] = word;
    ++count_;
}

void PendingWakes::send() const noexcept {
    for (std::size_t i = 0; i < count_; ++i) wake_sleeper(words_[i]);
}

}  // namespace nexar::runtime
