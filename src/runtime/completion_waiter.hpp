#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace nexar::runtime {

/// A word that one thread sleeps on (futex(2)).
using FutexWord = std::atomic<std::uint32_t>;

/// Wakes the thread that sleeps on `word`, if one does. The word may be gone: the kernel compares
/// addresses and does not read it, and who sleeps on another word that has come to live there takes
/// it for a spurious wake-up.
void wake_sleeper(const FutexWord* word) noexcept;

/// A thread inside a wait, on its stack. It is told when completions are done, and granted the
/// baton when it is to drive; until then it sleeps on its own word.
///
/// Whoever tells or grants touches it for the last time with one atomic operation; the system call
/// that wakes it follows later, by address only. The thread leaves when every completion in which
/// it was enlisted has either let go of it or told it.
class Waiter {
public:
    Waiter() = default;
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;

    struct Told {
        const FutexWord* sleeper = nullptr;  // to be woken, if not null
        bool drives = false;                 // it may sleep in epoll
    };
    /// One of its completions is done. Any thread.
    Told tell() noexcept;

    /// It holds the baton from now on. The word to be woken, or null. Under the baton's lock.
    const FutexWord* grant() noexcept;

    // The rest is for the thread itself, except told(), which anyone may ask who keeps it alive.
    bool told() const noexcept { return told_count() != 0; }
    std::uint32_t told_count() const noexcept {
        return word_.load(std::memory_order_acquire) / kOneTold;
    }
    bool granted() const noexcept {
        return (word_.load(std::memory_order_acquire) & kGranted) != 0;
    }
    /// It gave the baton away.
    void clear_grant() noexcept { word_.fetch_and(~kGranted, std::memory_order_acq_rel); }

    /// Returns when it was told or granted, or the deadline passed.
    void sleep(std::optional<TimePoint> deadline) noexcept;

    /// Returns when it was told `count` times. Only for what is on its way.
    void await_told(std::uint32_t count) const noexcept;

private:
    friend class Baton;

    static constexpr std::uint32_t kSleeping = 1;
    static constexpr std::uint32_t kGranted = 2;
    static constexpr std::uint32_t kOneTold = 4;  // the bits above count

    alignas(8) FutexWord word_{0};
    // The line for the baton, guarded by its lock.
    Waiter* before_ = nullptr;
    Waiter* behind_ = nullptr;
    bool in_line_ = false;
};

/// Sleepers that are to be woken when a lock has been released: one that woke while it is held
/// would run into it.
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
