#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>

#include "runtime/completion_waiter.hpp"

namespace nexar::runtime {

/// Who drives the loop: exactly one thread, which holds the baton.
///
/// A thread that waits takes it when nobody holds it, and steals it from the background thread when
/// that one rests (sleeps until something happens). Otherwise it stands in line, asleep. Who is
/// done gives the baton to the first in line, else leaves it lying. The background thread looks at
/// it from time to time and picks it up when nobody has used it since its last look: so a caller
/// that waits again and again finds it free, at the price of one lock, and a caller that computes
/// is followed by the background thread after two looks at the latest.
///
/// Never held while user code runs. Its lock is held for a few instructions and never together with
/// another one. Any thread may call what is not marked otherwise.
class Baton {
public:
    enum class Taken : std::uint8_t {
        free,    // the waiter drives
        stolen,  // the same; the background thread must be summoned once, to learn it
        queued,  // the waiter stands in line, until it is granted the baton or leaves
    };
    Taken take(Waiter& waiter);

    /// The same for a thread that drives while nobody else wants to, and gives way to who waits
    /// (contended()). None: a waiter holds it.
    std::optional<Taken> take_idle(Waiter& waiter);

    /// Takes it only if nobody holds it. For a thread that does not wait; release() gives it back.
    bool try_take();

    /// Leaves the line. True: it had been granted the baton already and must release it.
    bool leave(Waiter& waiter);

    /// What is to be done after a call, when no lock is held.
    struct Follow {
        const FutexWord* sleeper = nullptr;  // to be woken: it drives now
        bool summon = false;                 // the background thread has to look
    };
    /// The holder gives it to the first in line, else leaves it lying.
    [[nodiscard]] Follow release();

    /// Whether something waits that only a driver can do. Set it before call(): either the call
    /// finds the baton lying, or its holder sees this when it lets go.
    void set_wanted(bool wanted) noexcept { wanted_.store(wanted, std::memory_order_release); }

    /// True when nobody drives: the background thread must be summoned, and will take it.
    [[nodiscard]] bool call();

    // For the background thread.

    enum class Look : std::uint8_t {
        took,   // it drives
        again,  // look again soon
        away,   // a waiter has held it since the last look: sleep until summoned
    };
    Look look();

    /// The holder is about to sleep, and may be robbed from now on. False: others stand in line.
    bool rest();
    /// It woke. False: it was robbed.
    bool resume();
    /// Whether somebody stands in line, for whom the background thread makes way. Who was told does
    /// not count: it leaves as soon as it runs, perhaps on the very core that is asked from.
    bool contended() const;

private:
    enum class Holder : std::uint8_t { nobody, waiter, background, background_resting };

    Taken take_locked(Waiter& waiter);
    void push(Waiter& waiter) noexcept;
    void unlink(Waiter& waiter) noexcept;
    Waiter* first_untold() const noexcept;

    mutable std::mutex mutex_;
    Holder holder_ = Holder::nobody;
    bool called_ = false;      // a driver was asked for while nobody held it
    bool away_ = false;        // the background thread sleeps until summoned
    std::uint64_t uses_ = 0;   // by waiters
    std::uint64_t seen_ = 0;   // uses_ at the last look
    Waiter* first_ = nullptr;  // the line
    Waiter* last_ = nullptr;
    std::atomic<std::uint32_t> in_line_{0};  // written under the lock
    std::atomic<bool> wanted_{false};
};

}  // namespace nexar::runtime
