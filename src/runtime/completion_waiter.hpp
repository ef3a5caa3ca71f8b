#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace nexar::runtime {

/// A futex(2) word that one thread sleeps on.
using FutexWord = std::atomic<std::uint32_t>;

/// Wakes the thread that sleeps on `word`, if any. The word may already be destroyed: the kernel
/// compares addresses and does not read it, and a thread that sleeps on a new word at the same
/// address treats the wakeup as spurious.
void wake_sleeper(const FutexWord* word) noexcept;

/// A thread inside a wait; lives on its stack. Completions tell() it that they are done, and the
/// baton grants itself to the waiter that should drive; until then the thread sleeps on its own
/// word.
///
/// tell() and grant() touch the waiter for the last time in one atomic operation; the system call
/// that wakes it follows later and uses only the address. The thread returns when every completion
/// in which it was enlisted has either delisted or notified it.
class Waiter {
public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    /// One of its completions is done. Returns the word to wake, or null; the thread may also be
    /// asleep in epoll, as the driver. Any thread may call.
    const FutexWord* tell() noexcept;

    /// A waiter in the queue holds the baton from now on. Returns the word to wake, or null. Under
    /// the baton's lock.
    const FutexWord* grant() noexcept;

    // The rest is for the waiting thread itself, except told(), which any thread may call that
    // keeps the waiter alive.
    bool told() const noexcept { return told_count() != 0; }
    std::uint32_t told_count() const noexcept {
        return word_.load(std::memory_order_acquire) / kOneTold;
    }
    bool granted() const noexcept {
        return (word_.load(std::memory_order_acquire) & kGranted) != 0;
    }
    /// The waiter knows that it holds the baton; it may queue again later.
    void clear_grant() noexcept { word_.fetch_and(~kGranted, std::memory_order_acq_rel); }

    /// Returns when the waiter was notified or granted the baton, or the deadline passed.
    void sleep(std::optional<TimePoint> deadline) noexcept;

    /// Returns when the waiter was notified `count` times. Only for notifications that are
    /// imminent.
    void await_told(std::uint32_t count) const noexcept;

private:
    friend class Baton;

    static constexpr std::uint32_t kSleeping = 1;
    static constexpr std::uint32_t kGranted = 2;
    static constexpr std::uint32_t kOneTold = 4;  // the bits above count

    alignas(8) FutexWord word_{0};
    // The queue for the baton, guarded by the baton's lock.
    Waiter* before_ = nullptr;
    Waiter* behind_ = nullptr;
    bool in_line_ = false;
};

/// Sleepers to wake after a lock is released: if woken earlier, they would block on that lock.
class PendingWakes {
public:
    void add(const FutexWord* word) noexcept;
    bool empty() const noexcept { return count_ == 0; }
    void send() const noexcept;

private:
    std::size_t count_ = 0;
    std::array<const FutexWord*, 16> words_{};  // the first count_ of them
};

}  // namespace nexar::runtime
