#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <vector>

#include "base/time.hpp"
#include "port/link.hpp"
#include "runtime/waker.hpp"

namespace nexar::runtime {

/// What the loop sleeps on: two epoll sets, one inside the other.
///
///     outer:  inner, summons                the background thread, or the user's own loop
///     inner:  the carriers, the waker       a thread that waits and drives
///
/// So the background side can be called without disturbing a thread that drives, and a thread that
/// drives can be woken without spending the call of the other. Both are level-triggered. Watching
/// is done under the loop's lock; sleeping and signalling need no lock.
class Poller {
public:
    static Result<Poller> make();

    /// Watches the descriptors of these carriers; those that have none (-1) are skipped. Either all
    /// or none.
    Result<void> watch(std::span<port::Carrier* const> carriers);
    void unwatch(std::span<port::Carrier* const> carriers) noexcept;
    /// Follows Carrier::wants_write().
    void follow_writers() noexcept;

    /// Wakes who sleeps in sleep_driving().
    void wake() const noexcept { waker_.signal(); }
    /// Wakes who sleeps on the outer set, or in await_summons().
    void summon() const noexcept { summons_.signal(); }

    /// Sleeps until a carrier is ready, wake() was called, or the deadline. May return earlier.
    /// Only for the holder of the baton: it consumes the wake-up.
    void sleep_driving(std::optional<TimePoint> deadline) const noexcept;
    /// The same for the outer set, also until summon() was called. Does not consume wake-ups: while
    /// it sleeps, another thread may have become the one that they are for.
    void sleep_outside(std::optional<TimePoint> deadline) const noexcept;
    /// Until summon() was called, or `at_most` is over.
    void await_summons(std::optional<Duration> at_most) const noexcept;

    /// Consumes what was signalled so far. Wake-ups are the holder's of the baton.
    void drain_wakes() const noexcept { waker_.drain(); }
    void drain_summons() const noexcept { summons_.drain(); }

    /// The outer set: readable when there is something to do.
    int descriptor() const noexcept { return outer_.number(); }

private:
    struct Watched {
        port::Carrier* carrier = nullptr;
        int descriptor = -1;
        bool writable = false;  // EPOLLOUT is asked for
    };

    Poller(Descriptor inner, Descriptor outer, Waker waker, Waker summons) noexcept;
    Result<void> watch_one(port::Carrier& carrier);

    Descriptor inner_;
    Descriptor outer_;
    Waker waker_;
    Waker summons_;
    std::vector<Watched> watched_;
};

}  // namespace nexar::runtime
