#include "runtime/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"

namespace nexar::runtime {

namespace {

// How often one thread runs operations posted by others before it leaves them to a driver.
constexpr int kMostRounds = 4;

// How often a driver yields the processor before it retakes a lock that another thread is waiting
// for: a mutex favours the thread that is awake.
constexpr int kMostOffers = 64;

// How often a thread tries to take the lock before it sleeps until the lock is free; some 2 us.
constexpr int kMostTries = 200;

}  // namespace

thread_local constinit bool Progress::in_user_code = false;

bool Driven::fall_asleep() noexcept {
    return std::ranges::all_of(carriers(), [](port::Carrier* one) { return one->fall_asleep(); });
}

void Driven::wake_up() noexcept {
    for (port::Carrier* const one : carriers()) one->wake_up();
}

Progress::Progress(const Options& options, Poller poller)
    : options_(options),
      poller_(std::move(poller)),
      posted_(options.posted_capacity),
      // The user's loop counts as asleep until its first poll().
      lulled_(options.drive == Drive::user_loop) {}

Result<std::unique_ptr<Progress>> Progress::make(const Options& options) {
    NEXAR_TRY_VALUE(poller, Poller::make());
    std::unique_ptr<Progress> made(new Progress(options, std::move(poller)));
    if (options.drive == Drive::background) NEXAR_TRY(made->start_thread());
    return made;
}

Progress::~Progress() {
    stop();
    NEXAR_ASSERT(fork_guard_.forked() || driven_.empty(),
                 "remove() everything that is driven first");
}

Result<void> Progress::add(Driven& driven) {
    const Guard guard(*this);
    driven_.push_back(&driven);
    auto watched = poller_.watch(driven.carriers());
    if (!watched) {
        driven_.pop_back();
    } else if (lulled_ && !driven.fall_asleep()) {
        missed_ = true;
    }
    return watched;
}

void Progress::remove(Driven& driven) {
    // The child shares the epoll set: removing a descriptor here would remove it for the parent.
    if (fork_guard_.forked()) return;
    const Guard guard(*this);
    poller_.unwatch(driven.carriers());
    if (lulled_) driven.wake_up();
    const auto erased = std::erase(driven_, &driven);
    NEXAR_ASSERT(erased == 1, "only a Driven that was added can be removed");
}

void Progress::complete(Completion& completion) noexcept {
    NEXAR_ASSERT(owner_.load(std::memory_order_relaxed) == pthread_self(),
                 "operations must complete under the lock");
    const auto interested = completion.finish();
    if (interested.continuation != nullptr) due_.push(*interested.continuation);
    if (interested.waiter == nullptr) return;
    // Compared first: after tell() the waiter may be gone.
    if (interested.waiter == sleeper_) told_driver_ = true;
    wakes_.add(interested.waiter->tell());
}

bool Progress::withdraw(Completion& completion, Continuation& continuation) {
    const Guard guard(*this);
    return completion.drop_continuation() || due_.remove(continuation);
}

void Progress::post(Submission& posted) {
    enter("post an operation");
    if (!try_acquire()) {
        if (posted_.try_push(std::ref(posted))) {
            if (!lock_.set_posted() && try_lock()) unlock();
            return;
        }
        acquire();
    }
    const TimePoint quiet = begin_changes();
    posted.run_by_poster();
    end_changes(quiet);
    const auto drives = drive_in_place();
    unlock();
    if (!drives) return;
    if (*drives == Baton::Taken::stolen) poller_.summon();
    release_baton();
}

void Progress::enter(const char* doing) const {
    fork_guard_.check(doing);
    if (owner_.load(std::memory_order_relaxed) != pthread_self()) return;
    throw Error(Errc::reentrant_call,
                fmt::format("cannot {} in code that nexar calls while it processes messages, such "
                            "as a user-defined operator; do it outside that code",
                            doing));
}

void Progress::lock() noexcept {
    acquire();
    quiet_until_ = TimePoint::min();
}

bool Progress::try_lock() noexcept {
    if (!try_acquire()) return false;
    quiet_until_ = TimePoint::min();
    return true;
}

// Takes the lock without marking the state as changed.
void Progress::acquire() noexcept {
    if (try_acquire()) return;
    // A driver that spins holds the lock until it sees this, which takes it less time than a thread
    // takes to sleep and wake.
    blocked_.fetch_add(1, std::memory_order_relaxed);
    bool taken = false;
    for (int i = 0; i < kMostTries && !taken; ++i) taken = lock_.try_lock();
    if (!taken) lock_.lock();
    blocked_.fetch_sub(1, std::memory_order_relaxed);
    owner_.store(pthread_self(), std::memory_order_relaxed);
    drain_posted();
}

bool Progress::try_acquire() noexcept {
    if (!lock_.try_lock()) return false;
    owner_.store(pthread_self(), std::memory_order_relaxed);
    // Operations that this thread posted come before what it does now.
    drain_posted();
    return true;
}

// No posted operation is lost. The poster pushes and then sets the flag in the word of the lock. If
// a thread holds the lock at this moment, its unlock() returns true. Otherwise the poster tries the
// lock, which fails only if a third thread holds it, and that thread's unlock() will return true.
void Progress::unlock() noexcept {
    for (int round = 0;; ++round) {
        drain_posted();
        if (!release_and_call(settle())) return;
        if (round >= kMostRounds && !stopping_.load(std::memory_order_acquire)) {
            return summon_driver();
        }
        if (!try_lock()) return;
    }
}

// Wakeups follow the release of the lock: a thread woken earlier would block on it. Returns true if
// something was posted meanwhile.
bool Progress::release_and_call(const Calls& calls) noexcept {
    owner_.store(pthread_t{}, std::memory_order_relaxed);
    bool posted = false;
    if (wakes_.empty()) {
        posted = lock_.unlock();
    } else {
        const PendingWakes wakes(std::exchange(wakes_, {}));
        posted = lock_.unlock();
        wakes.send();
    }
    if (calls.wake) poller_.wake();
    if (calls.relief) relief_.store(true, std::memory_order_release);
    if (calls.summon || calls.relief || (calls.driver && baton_.call())) poller_.summon();
    return posted;
}

void Progress::give_way() noexcept {
    for (int i = 0; i < kMostOffers && blocked_.load(std::memory_order_relaxed) != 0; ++i) {
        std::this_thread::yield();
    }
}

void Progress::drain_posted() noexcept {
    if (!lock_.has_posted()) return;
    lock_.clear_posted();
    quiet_until_ = TimePoint::min();
    // Runs the operations that are in the queue now; later ones set the flag again. Waits for an
    // operation that another thread is just pushing, because one of this thread's may be behind it.
    for (auto left = posted_.size_approx(); left > 0; --left) {
        auto next = posted_.try_pop();
        while (!next) {
            std::this_thread::yield();
            next = posted_.try_pop();
        }
        next->get().run_under_lock();
    }
}

// Under the lock, before its release: decides whom to wake besides the waiters.
Progress::Calls Progress::settle() noexcept {
    const bool told_driver = std::exchange(told_driver_, false);
    const bool missed = std::exchange(missed_, false);
    const bool continues = !due_.empty() && !running_;
    const bool wanted = continues && runs_continuations();
    baton_.set_wanted(wanted);
    Calls calls;
    if (options_.drive == Drive::user_loop) calls.summon = settle_user_loop(continues || missed);
    // Harmless if no thread drives any more: the background thread also takes the baton.
    calls.relief = wanted && barred_;
    if (!asleep_) {
        calls.driver = wanted;
        return calls;
    }
    poller_.follow_writers();
    const bool serves = wanted && !barred_;
    calls.wake =
        told_driver || missed || serves || earliest().value_or(TimePoint::max()) < wake_at_;
    if (calls.wake) asleep_ = false;  // once is enough
    return calls;
}

bool Progress::settle_user_loop(bool needed) noexcept {
    poller_.follow_writers();
    if (summoned_) return false;
    summoned_ = needed || earliest().value_or(TimePoint::max()) < announced_;
    return summoned_;
}

// If a thread drives, it will soon take the lock again; if not, the background thread does.
void Progress::summon_driver() noexcept {
    baton_.set_wanted(true);
    poller_.wake();
    if (options_.drive == Drive::user_loop || baton_.call()) poller_.summon();
}

std::optional<TimePoint> Progress::earliest() const noexcept {
    std::optional<TimePoint> first;
    for (const Driven* const one : driven_) {
        const auto deadline = one->next_deadline();
        if (deadline && (!first || *deadline < *first)) first = deadline;
    }
    return first;
}

}  // namespace nexar::runtime
