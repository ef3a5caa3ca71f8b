// The background thread: drives while no caller does.

#include <fmt/format.h>
#include <pthread.h>

#include <csignal>
#include <cstring>
#include <nexar/error.hpp>

#include "base/assert.hpp"
#include "runtime/progress.hpp"

namespace nexar::runtime {

namespace {

// Signals are for the application's threads. A new thread inherits the mask of its creator.
class AllSignalsBlocked {
public:
    AllSignalsBlocked() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    AllSignalsBlocked(const AllSignalsBlocked&) = delete;
    AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;
    ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_{};
};

}  // namespace

Result<void> Progress::start_thread() {
    const AllSignalsBlocked blocked;
    const auto body = [](void* progress) -> void* {
        static_cast<Progress*>(progress)->run_background();
        return nullptr;
    };
    pthread_t thread{};
    if (const int error = pthread_create(&thread, nullptr, body, this); error != 0) {
        return Error(
            Errc::bad_config,
            fmt::format(
                "cannot start the background thread of the progress loop: {}; raise the limit "
                "on threads (ulimit -u), or drive the node from your own event loop",
                std::strerror(error)));  // NOLINT(concurrency-mt-unsafe)
    }
    pthread_setname_np(thread, "nexar");
    thread_ = thread;
    return {};
}

void Progress::stop() {
    // The child has no such thread, and its locks may never be released.
    if (fork_guard_.forked()) return;
    if (thread_) join(*thread_);
    while (run_due()) {
    }
}

// Returns false if nothing is due or another thread runs it.
bool Progress::run_due() {
    lock();
    const bool claimed = claim();
    unlock();
    if (claimed) run_claimed();
    return claimed;
}

void Progress::join(pthread_t thread) {
    if (pthread_equal(thread, pthread_self()) != 0) {
        throw Error(Errc::reentrant_call,
                    "the progress loop cannot be stopped by a continuation that its own thread "
                    "runs, because stopping waits for that thread; stop it from another thread");
    }
    stopping_.store(true, std::memory_order_release);
    poller_.summon();
    const int joined = pthread_join(thread, nullptr);
    NEXAR_ASSERT(joined == 0);
    thread_.reset();
}

void Progress::run_background() {
    while (!stopping_.load(std::memory_order_acquire)) {
        if (relief_.exchange(false, std::memory_order_acq_rel)) run_due();
        switch (baton_.look()) {
            case Baton::Look::took:
                drive_background();
                break;
            case Baton::Look::again:
                poller_.await_summons(options_.look);
                break;
            case Baton::Look::away:
                poller_.await_summons(std::nullopt);
                break;
        }
    }
}

// Called with the baton; returns without it.
void Progress::drive_background() {
    Spin spin = background_spin();
    for (;;) {
        TimePoint now = SteadyClock{}.now();
        // One look per turn: a caller that does not wait may need the lock any moment.
        const Turn done = turn(now, TimePoint::min(), nullptr);
        if (done.claimed) {
            follow(baton_.release());
            return run_claimed();
        }
        if (stopping_.load(std::memory_order_acquire) || baton_.contended()) break;
        if (goes_on(spin, done.active, now)) continue;
        count_processors(now);
        if (!rest()) return;
    }
    follow(baton_.release());
}

// Returns false if a caller drives now.
bool Progress::rest() noexcept {
    lock();
    if (!lull()) {
        unlock();
        return true;
    }
    const auto until = fall_asleep();
    if (!baton_.rest()) return true;
    poller_.sleep_outside(until);
    if (!baton_.resume()) return false;
    poller_.drain_wakes();
    return true;
}

}  // namespace nexar::runtime
