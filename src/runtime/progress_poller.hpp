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

/// The two nested epoll sets that the loop sleeps on.
///
///     outer:  inner, summons                the background thread, or the user's own loop
///     inner:  the carriers, the waker       a thread that waits and drives
///
/// With two sets, summon() does not disturb a driving thread, and wake() does not consume a
/// summons. Both are level-triggered. Watching requires the loop's lock; sleeping and signalling do
/// not.
class Poller {
public:
    static Result<Poller> make();

    /// Watches the descriptors of these carriers, either all or none; skips carriers without one
    /// (-1).
    Result<void> watch(std::span<port::Carrier* const> carriers);
    void unwatch(std::span<port::Carrier* const> carriers) noexcept;
    /// Updates the watched events from Carrier::wants_write().
    void follow_writers() noexcept;

    /// Wakes the thread in sleep_driving().
    void wake() const noexcept { waker_.signal(); }
    /// Wakes the thread that sleeps on the outer set or in await_summons().
    void summon() const noexcept { summons_.signal(); }

    /// Sleeps until a carrier is ready, wake() is called or the deadline passes. May return
    /// earlier. Only for the holder of the baton, because it consumes the wakeup.
    void sleep_driving(std::optional<TimePoint> deadline) const noexcept;
    /// The same for the outer set; also returns on summon(). Does not consume wakeups: another
    /// thread may have taken the baton meanwhile, and they are for that thread.
    void sleep_outside(std::optional<TimePoint> deadline) const noexcept;
    /// Sleeps until summon() is called or `at_most` has passed.
    void await_summons(std::optional<Duration> at_most) const noexcept;

    /// Consumes pending wakeups. Only for the holder of the baton.
    void drain_wakes() const noexcept { waker_.drain(); }
    void drain_summons() const noexcept { summons_.drain(); }

    /// The outer set; readable when there is something to do.
    int descriptor() const noexcept { return outer_.number(); }

private:
    struct Watched {
        port::Carrier* carrier = nullptr;
        int descriptor = -1;
        bool writable = false;  // EPOLLOUT is requested
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
