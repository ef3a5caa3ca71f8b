// The background thread: drives while no caller does.

#include <pthread.h>

#include <csignal>
#include <nexar/error.hpp>

#include "base/assert.hpp"
#include "runtime/progress.hpp"
#include "runtime/progress_spin.hpp"

namespace nexar::runtime {

namespace {

// Signals are for the application's threads: a new thread inherits the mask of its maker.
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

void Progress::start_thread() {
    const AllSignalsBlocked blocked;
    thread_ = std::make_unique<std::thread>([this] { run_background(); });
    pthread_setname_np(thread_->native_handle(), "nexar");
}

void Progress::stop() {
    if (fork_guard_.forked()) {
        // There is no such thread in the child: joining it, detaching it and destroying what stands
        // for it are all undefined.
        static_cast<void>(thread_.release());  // NOLINT(bugprone-unused-return-value)
        return;
    }
    if (thread_ != nullptr) join_thread();
    for (bool claimed = true; claimed;) {
        lock();
        claimed = claim();
        unlock();
        if (claimed) run_claimed(nullptr);
    }
}

void Progress::join_thread() {
    if (thread_->get_id() == std::this_thread::get_id()) {
        throw Error(Errc::reentrant_call,
                    "the progress loop cannot be stopped by a continuation that its own thread "
                    "runs, because stopping waits for that thread; stop it from another thread");
    }
    stopping_.store(true, std::memory_order_release);
    poller_.summon();
    thread_->join();
    thread_.reset();
}

void Progress::run_background() {
    while (!stopping_.load(std::memory_order_acquire)) {
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

// Holds the baton when it begins, and not any more when it returns.
void Progress::drive_background() {
    Spin spin(options_.spin);
    for (;;) {
        const TimePoint now = SteadyClock{}.now();
        const Turn done = turn(now);
        if (done.claimed) {
            follow(baton_.release());
            return run_claimed(nullptr);
        }
        if (stopping_.load(std::memory_order_acquire) || baton_.contended()) break;
        if (!spin.goes_on(done.active, now) && !rest()) return;
    }
    follow(baton_.release());
}

// False: a caller drives now.
bool Progress::rest() noexcept {
    lock();
    const auto until = fall_asleep();
    if (!baton_.rest()) return true;
    poller_.sleep_outside(until);
    return baton_.resume();
}

}  // namespace nexar::runtime
