#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "runtime/completion_waiter.hpp"

namespace nexar::runtime {

/// Decides which thread drives the loop. Exactly one does at a time: the holder of the baton.
///
/// A waiting thread takes the baton when it is free, and steals it from the background thread while
/// that one rests (sleeps until something happens). Otherwise the thread sleeps in a queue. A
/// driver that is done hands the baton to the first in the queue, or else leaves it free. The
/// background thread checks the baton periodically and takes it when no waiter has used it since
/// the last check. So a caller that waits repeatedly finds the baton free at the cost of one lock,
/// and when a caller computes instead, the background thread takes over after at most two checks.
///
/// No thread holds the baton while it runs user code. The internal lock is held for a few
/// instructions and never together with another one. Taking a free baton and releasing it with
/// nobody interested takes one atomic operation each, without the lock. Any thread may call, except
/// where noted.
class Baton {
public:
    enum class Taken : std::uint8_t {
        free,    // the waiter drives
        stolen,  // the same; summon the background thread once, so that it notices
        queued,  // the waiter is in the queue until it is granted the baton or leaves
    };
    Taken take(Waiter& waiter) { return take_free() ? Taken::free : take_or_queue(waiter); }

    /// The same for a thread that drives only while no other thread wants to, and yields to waiters
    /// (contended()). Returns nullopt if a waiter holds the baton.
    std::optional<Taken> take_idle(Waiter& waiter);

    /// Takes the baton only if it is free. For a thread that does not wait; release() gives it
    /// back.
    bool try_take();
    /// The same, but also steals it from a resting background thread. Returns nullopt if another
    /// thread drives.
    std::optional<Taken> try_take_or_steal();

    /// Leaves the queue. Returns true if the waiter had already been granted the baton and must
    /// release it.
    bool leave(Waiter& waiter);

    /// What the caller must do after the call, without holding any lock.
    struct Follow {
        const FutexWord* sleeper = nullptr;  // wake it: it drives now
        bool summon = false;                 // summon the background thread
    };
    /// The holder hands the baton to the first in the queue, or else leaves it free.
    [[nodiscard]] Follow release() {
        if (!wanted_.load(std::memory_order_acquire) && release_free()) return {};
        return release_or_grant();
    }

    /// Whether there is work that only a driver can do. Set it before call(): either call() finds
    /// the baton free, or its holder sees the flag when it releases the baton.
    void set_wanted(bool wanted) noexcept { wanted_.store(wanted, std::memory_order_release); }

    /// Returns true if no thread drives; then summon the background thread, which will take the
    /// baton.
    [[nodiscard]] bool call();

    // For the background thread.

    enum class Look : std::uint8_t {
        took,   // it drives
        again,  // check again soon
        away,   // a waiter has held it since the last check: sleep until summoned
    };
    Look look();

    /// The holder is about to sleep; from now on waiters may steal the baton. Returns false if the
    /// queue is not empty.
    bool rest();
    /// The holder woke. Returns false if a waiter stole the baton.
    bool resume();
    /// Whether a waiter is in the queue, to which the background thread yields. Waiters that were
    /// notified do not count: they leave as soon as they run, possibly on the caller's own core.
    bool contended() const;

private:
    enum class Holder : std::uint8_t { nobody, waiter, background, background_resting };

    // The baton without the lock. The thread that has the lock sets it to `in_members`; then the
    // members below say who holds the baton. Otherwise they are as if nobody did and nobody were
    // interested.
    enum class Fast : std::uint32_t { nobody, waiter, in_members };

    // The lock, with holder_ up to date.
    class Locked {
    public:
        explicit Locked(Baton& baton);
        Locked(const Locked&) = delete;
        Locked& operator=(const Locked&) = delete;
        ~Locked();

    private:
        Baton& baton_;
        std::scoped_lock<std::mutex> lock_;
    };

    bool take_free() noexcept {
        Fast nobody = Fast::nobody;
        if (!fast_.compare_exchange_strong(nobody, Fast::waiter, std::memory_order_acquire,
                                           std::memory_order_relaxed)) {
            return false;
        }
        count_use();
        return true;
    }
    bool release_free() noexcept {
        Fast waiter = Fast::waiter;
        return fast_.compare_exchange_strong(waiter, Fast::nobody, std::memory_order_release,
                                             std::memory_order_relaxed);
    }
    // For the holder, or under the lock when there is none.
    void count_use() noexcept {
        uses_.store(uses_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    Taken take_or_queue(Waiter& waiter);
    Follow release_or_grant();
    Taken take_locked(Waiter& waiter);
    void push(Waiter& waiter) noexcept;
    void unlink(Waiter& waiter) noexcept;
    Waiter* first_untold() const noexcept;

    mutable std::mutex mutex_;
    Holder holder_ = Holder::nobody;
    bool called_ = false;      // call() requested a driver while the baton was free
    bool away_ = false;        // the background thread sleeps until summoned
    std::uint64_t seen_ = 0;   // uses_ at the last check
    Waiter* first_ = nullptr;  // the queue
    Waiter* last_ = nullptr;
    std::atomic<std::uint32_t> in_line_{0};  // written under the lock
    std::atomic<bool> wanted_{false};
    std::atomic<Fast> fast_{Fast::nobody};
    std::atomic<std::uint64_t> uses_{0};  // by waiters
};

}  // namespace nexar::runtime
