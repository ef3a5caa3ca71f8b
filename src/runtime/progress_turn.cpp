// One turn of a driver, whichever thread it is, and the functions for a user's event loop.

#include <thread>

#include "runtime/progress.hpp"

namespace nexar::runtime {

namespace {

// Maximum number of continuations per claim, because the driver must also serve links and keep its
// deadline.
constexpr int kMostContinuations = 256;

}  // namespace

Progress::Turn Progress::turn(TimePoint now) noexcept {
    acquire();
    barred_ = in_user_code;
    const Turn done = turn_locked(now, runs_continuations() && !barred_);
    unlock();
    give_way();
    return done;
}

// `may_claim`: this thread runs the due continuations after it releases the baton, unless another
// thread already does.
Progress::Turn Progress::turn_locked(TimePoint now, bool may_claim) noexcept {
    Turn done;
    asleep_ = false;
    const bool quiet = now < quiet_until_;
    for (Driven* const one : driven_) done.active |= quiet ? one->look(now) : one->turn(now);
    if (done.active) {
        quiet_until_ = TimePoint::min();
    } else if (!quiet) {
        quiet_until_ = earliest().value_or(TimePoint::max());
    }
    done.claimed = may_claim && claim();
    return done;
}

// Returns false if the driver should sleep.
bool Progress::goes_on(Spin& spin, bool active, TimePoint now) noexcept {
    const Spin::Next next = spin.next(active, now);
    if (next == Spin::Next::offer) {
        std::this_thread::yield();
        spin.offered(SteadyClock{}.now() - now);
    }
    return next != Spin::Next::sleep;
}

// Under the lock. If it returns true, only this thread runs continuations until the end of
// run_claimed().
bool Progress::claim() noexcept {
    if (running_ || due_.empty()) return false;
    running_ = true;
    return true;
}

// Under the lock, which it releases. From here on, a thread that changes what the driver waits for
// wakes it. Returns the time until which the driver may sleep.
std::optional<TimePoint> Progress::fall_asleep() noexcept {
    poller_.follow_writers();
    const auto until = earliest();
    asleep_ = true;
    wake_at_ = until.value_or(TimePoint::max());
    unlock();
    return until;
}

// If continuations are left when it gives up the claim, releasing the lock finds a driver for them.
void Progress::run_claimed() {
    lock();
    for (int left = kMostContinuations; left > 0; --left) {
        Continuation* const next = due_.pop();
        if (next == nullptr) break;
        unlock();
        next->run();
        fork_guard_.check("return from a continuation");
        lock();
    }
    running_ = false;
    unlock();
}

std::optional<TimePoint> Progress::next_deadline() {
    const Guard guard(*this);
    const auto first = earliest();
    announced_ = first.value_or(TimePoint::max());
    return first;
}

void Progress::poll() {
    enter("poll");
    poller_.drain_summons();
    const bool drives = baton_.try_take();
    if (drives) poller_.drain_wakes();
    lock();
    const bool claimed = drives ? turn_locked(SteadyClock{}.now(), true).claimed : claim();
    summoned_ = false;
    announced_ = TimePoint::min();  // the user now calls next_deadline()
    unlock();
    if (drives) follow(baton_.release());
    if (claimed) run_claimed();
}

}  // namespace nexar::runtime
