#pragma once

#include <atomic>
#include <cstdint>

namespace nexar::runtime {

/// The lock of a progress loop: a mutex whose word also holds a flag that other threads set without
/// the lock, to tell its holder that they posted an operation. So locking and unlocking take one
/// atomic operation each, where a mutex and a separate flag take three.
///
/// Sleeping threads wait in futex(2). Any thread may call, except where noted.
class LoopLock {
public:
    LoopLock() = default;
    LoopLock(const LoopLock&) = delete;
    LoopLock& operator=(const LoopLock&) = delete;

    /// Fails only if another thread holds the lock.
    bool try_lock() noexcept {
        std::uint32_t word = word_.load(std::memory_order_relaxed);
        while ((word & kLocked) == 0) {
            if (word_.compare_exchange_weak(word, word | kLocked, std::memory_order_acq_rel,
                                            std::memory_order_relaxed)) {
                return true;
            }
        }
        return false;
    }
    /// Sleeps until the lock is free.
    void lock() noexcept;

    /// Only for the holder. Returns true if the flag is set: the caller must then lock again and
    /// run what was posted, unless another thread has locked in the meantime.
    bool unlock() noexcept {
        const std::uint32_t word =
            word_.fetch_and(~(kLocked | kSleepers), std::memory_order_acq_rel);
        if ((word & kSleepers) != 0) wake_one();
        return (word & kPosted) != 0;
    }

    /// Sets the flag, after an operation was added to the queue. Returns true if a thread holds the
    /// lock, whose unlock() will then return true.
    bool set_posted() noexcept {
        return (word_.fetch_or(kPosted, std::memory_order_acq_rel) & kLocked) != 0;
    }
    bool has_posted() const noexcept {
        return (word_.load(std::memory_order_relaxed) & kPosted) != 0;
    }
    /// Only for the holder, before it takes operations from the queue.
    void clear_posted() noexcept { word_.fetch_and(~kPosted, std::memory_order_acq_rel); }

private:
    static constexpr std::uint32_t kLocked = 1;
    static constexpr std::uint32_t kSleepers = 2;  // threads may sleep in lock()
    static constexpr std::uint32_t kPosted = 4;

    void wake_one() noexcept;

    std::atomic<std::uint32_t> word_{0};
};

}  // namespace nexar::runtime
