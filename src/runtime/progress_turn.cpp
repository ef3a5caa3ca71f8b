// One turn of a driver, whichever thread it is, and the functions for a user's event loop.

#include <algorithm>
#include <thread>

#include "base/processors.hpp"
#include "runtime/progress.hpp"

namespace nexar::runtime {

namespace {

// Maximum number of continuations per claim, because the driver must also serve links and keep its
// deadline.
constexpr int kMostContinuations = 256;

// A look that only reads memory costs less than reading the clock.
constexpr int kLooksPerClock = 4;

// Quotas and affinity masks change rarely, and reading them takes as long as some wakeups.
constexpr Duration kCountEvery = std::chrono::seconds(10);

}  // namespace

// Advances `now`. While nothing happens, repeats look() until `look_until` at the latest, unless
// `wait` (null for the background thread) is over before.
Progress::Turn Progress::turn(TimePoint& now, TimePoint look_until, const Wait* wait) noexcept {
    acquire();
    barred_ = in_user_code;
    Turn done = turn_locked(now, runs_continuations() && !barred_);
    const bool over = wait != nullptr && wait->over();
    if (!done.active && !done.claimed && !over && now < look_until) {
        done.active = look_repeatedly(now, look_until);
        done.claimed = done.active && runs_continuations() && !barred_ && claim();
    }
    unlock();
    give_way();
    return done;
}

// Under the lock, which it keeps because taking it costs more than a look. Returns when another
// thread wants the lock or has posted something. The `now` that Driven sees is up to kLooksPerClock
// looks old.
bool Progress::look_repeatedly(TimePoint& now, TimePoint until) noexcept {
    const TimePoint end = std::min(until, quiet_until_);
    while (now < end) {
        for (int i = 0; i < kLooksPerClock; ++i) {
            if (look(now)) return true;
            if (lock_is_wanted()) return false;
        }
        now = SteadyClock{}.now();
    }
    return false;
}

bool Progress::look(TimePoint now) noexcept {
    bool active = false;
    for (Driven* const one : driven_) {
        calm_until_ = TimePoint::min();
        if (!one->look(now)) continue;
        active = true;
        quiet_until_ = std::min(quiet_until_, calm_until_);
    }
    return active;
}

// `may_claim`: this thread runs the due continuations after it releases the baton, unless another
// thread already does.
Progress::Turn Progress::turn_locked(TimePoint now, bool may_claim) noexcept {
    Turn done;
    asleep_ = false;
    sleeper_ = nullptr;
    missed_ = false;
    if (lulled_) rouse();
    const bool quiet = now < quiet_until_;
    if (quiet) {
        done.active = look(now);
    } else {
        for (Driven* const one : driven_) done.active |= one->turn(now);
        quiet_until_ = earliest().value_or(TimePoint::max());
    }
    done.claimed = may_claim && claim();
    return done;
}

// Under the lock: makes a turn if the poster of an operation has looked for arrivals and nobody has
// driven for some time. Returns how it took the baton, if it did; the caller must release it.
std::optional<Baton::Taken> Progress::drive_in_place() noexcept {
    constexpr Duration kEvery = std::chrono::microseconds(20);
    const TimePoint now = std::exchange(looked_in_place_, TimePoint::min());
    if (now < drive_in_place_at_ || now == TimePoint::min() || !runs_continuations()) return {};
    const auto taken = baton_.try_take_or_steal();
    if (!taken) return {};
    drive_in_place_at_ = now + kEvery;
    barred_ = true;  // the poster runs no continuations
    turn_locked(now, false);
    return taken;
}

// Returns false if the driver should sleep.
bool Progress::goes_on(Spin& spin, bool active, TimePoint now) noexcept {
    const Spin::Next next = spin.next(active, now);
    if (next == Spin::Next::offer) {
        const TimePoint begin = SteadyClock{}.now();  // `now` is that of the turn, which takes time
        std::this_thread::yield();
        spin.offered(begin, SteadyClock{}.now() - begin);
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

// Under the lock: tells everything driven that nobody polls from now on. Returns false if something
// has arrived that would wake nobody; then nothing sleeps, and the caller needs another turn.
//
// No arrival is lost. A carrier may let arrivals pass without an event on its descriptor only while
// it is awake, and it is awake only
//  - while a driver takes turns. Before that driver sleeps, it comes here. A carrier publishes that
//    it sleeps and then looks at what has arrived; a sender publishes what it sends and then looks
//    whether the carrier sleeps, each with a full fence in between. So at least one of them sees
//    the other: either this returns false, or the sender makes the descriptor readable, which ends
//    the sleep even if it has not begun, because the epoll sets are level-triggered.
//  - while the baton is free and a background thread exists. That thread does not sleep on the
//    carriers then; it looks at the baton periodically, soon takes it, and begins with a turn.
//  - between poll() and next_deadline() of a user's loop, which must call both before it sleeps.
//    next_deadline() comes here, and so does every other thread that drives in between and
//    releases the baton (lull_for_user_loop()).
// The carriers wake with the next turn, whichever thread takes it, under the same lock.
bool Progress::lull() noexcept {
    if (lulled_) return true;  // by the user's loop, since the driver's last turn
    lulled_ = true;
    const bool quiet = std::ranges::all_of(driven_, [](Driven* one) { return one->fall_asleep(); });
    if (!quiet) rouse();
    return quiet;
}

void Progress::rouse() noexcept {
    lulled_ = false;
    for (Driven* const one : driven_) one->wake_up();
}

// A thread that drove returns, and the user's loop may be asleep.
void Progress::lull_for_user_loop() noexcept {
    lock();
    if (!loop_polls_ && !lull()) missed_ = true;
    unlock();
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

void Progress::set_local_ranks(std::size_t ranks) noexcept {
    local_ranks_.store(ranks, std::memory_order_relaxed);
    crowd_.set_outnumbered(static_cast<double>(ranks) > usable_processors());
}

// For a driver that is about to sleep and has nothing better to do.
void Progress::count_processors(TimePoint now) noexcept {
    if (now < count_again_) return;
    const bool first = count_again_ == TimePoint{};
    count_again_ = now + kCountEvery;
    const std::size_t ranks = local_ranks_.load(std::memory_order_relaxed);
    if (!first && ranks != 0) set_local_ranks(ranks);
}

// If continuations are left when it gives up the claim, releasing the lock finds a driver for them.
void Progress::run_claimed() {
    lock();
    runner_ = pthread_self();
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
    loop_polls_ = false;
    auto first = earliest();
    if (!lull()) first = SteadyClock{}.now();
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
    loop_polls_ = true;
    unlock();
    if (drives) follow(baton_.release());
    if (claimed) run_claimed();
}

}  // namespace nexar::runtime
