#pragma once

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/node.hpp>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bounded_queue.hpp"
#include "base/time.hpp"
#include "port/link.hpp"
#include "runtime/baton.hpp"
#include "runtime/completion.hpp"
#include "runtime/completion_waiter.hpp"
#include "runtime/fork_guard.hpp"
#include "runtime/loop_lock.hpp"
#include "runtime/progress_poller.hpp"
#include "runtime/spin.hpp"

namespace nexar::runtime {

/// The carriers and the engine of one node, which a loop drives. Called only under the loop's lock;
/// must not call the loop except for Progress::complete().
class Driven {
public:
    virtual ~Driven() = default;

    /// Constant from add() to remove(), with the same descriptors; the loop watches them.
    virtual std::span<port::Carrier* const> carriers() const noexcept = 0;

    /// Calls on_ready, flushes, passes events to the engine, and flushes again; bounded. Returns
    /// whether anything happened, in which case the loop does not sleep. `now` never decreases.
    virtual bool turn(TimePoint now) noexcept = 0;

    /// A turn before next_deadline() when nothing was done under the lock since the last one,
    /// except what Progress::stay_quiet() allows, so that only arrivals matter. A driver calls this
    /// repeatedly while it spins.
    virtual bool look(TimePoint now) noexcept { return turn(now); }

    /// The latest time for the next turn() if no descriptor becomes ready; not later than `now` if
    /// a turn has something to send.
    virtual std::optional<TimePoint> next_deadline() const noexcept = 0;

    /// The driver is about to sleep: from now on every arrival must make a descriptor readable.
    /// Returns false if something has arrived, since the last turn, that does not; then the driver
    /// takes another turn instead. What a turn saw and left must not count, or the driver would
    /// never sleep.
    virtual bool fall_asleep() noexcept;
    /// Called before the first turn after fall_asleep().
    virtual void wake_up() noexcept;
};

/// An operation that a thread submits without waiting for the lock. The owner keeps it alive until
/// run_under_lock() begins. run_under_lock() may destroy it, and must not call the loop except for
/// Progress::complete().
class Submission {
public:
    virtual ~Submission() = default;

    virtual void run_under_lock() noexcept = 0;

    /// The same in the thread that called post(), which has not returned yet.
    virtual void run_by_poster() noexcept { run_under_lock(); }
};

/// Drives the nodes of a process: polls their links and timers, wakes waiting threads, and runs
/// continuations.
///
/// One lock guards everything that is driven. Exactly one thread drives at a time, the holder of
/// the baton (see Baton): a thread in wait(), or else the background thread. The driver holds the
/// lock while it drives, but never while it sleeps. User code (continuations) runs without lock and
/// baton, one at a time, in the order of completion. It may call everything here, and a wait()
/// inside it runs no other continuation. A continuation that blocks in any other way delays the
/// other continuations and the thread that runs it, but no other waiting thread. Code that calls
/// other user code marks it with UserCode: a wait() inside it does not run continuations either.
///
/// Any thread may call. In a forked child every call that can fail throws Error(Errc::forked), and
/// remove(), stop() and the destructor leave the parent alone. A call from within turn() or
/// run_under_lock() throws Error(Errc::reentrant_call).
class Progress {
public:
    enum class Drive : std::uint8_t {
        background,  // a background thread drives when no caller does
        user_loop,   // the user's event loop calls poll(); continuations run only there
    };
    struct Options {
        Drive drive = Drive::background;
        Waiting waiting = Waiting::automatic;
        /// How long a waiting thread keeps polling after the last activity before it sleeps; if not
        /// set, kDefaultSpin.
        std::optional<Duration> spin{};
        /// How often the background thread checks whether callers still drive.
        Duration look = std::chrono::milliseconds(1);
        /// Maximum number of operations posted while another thread holds the lock.
        std::size_t posted_capacity = 1024;
    };

    /// A thread that sleeps takes some 10 us to wake, and peers often compute for some 10 us
    /// between messages.
    static constexpr Duration kDefaultSpin = std::chrono::microseconds(100);
    /// The background thread polls for at most this long: its caller computes, perhaps on the same
    /// processor.
    static constexpr Duration kBackgroundSpin = std::chrono::microseconds(20);

    static Result<std::unique_ptr<Progress>> make(const Options& options);

    /// True in a forked child of the process that created this object.
    bool forked() const noexcept { return fork_guard_.forked(); }

    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Stops the loop. Everything must have been removed, and no thread may be waiting.
    /// Continuations that have not run are dropped.
    ~Progress();

    /// `driven` must stay alive until remove(). Fails if its descriptors cannot be watched.
    Result<void> add(Driven& driven);

    /// Returns when the loop no longer uses `driven`. May be called inside a continuation.
    void remove(Driven& driven);

    /// Holds the lock, to start operations. On release, it notifies the waiters of everything that
    /// completed, and wakes a sleeping driver if it is needed earlier than planned.
    class Guard {
    public:
        explicit Guard(Progress& progress) : progress_(progress) {
            progress_.enter("start an operation");
            progress_.lock();
        }
        Guard(const Guard&) = delete;
        Guard& operator=(const Guard&) = delete;
        ~Guard() { progress_.unlock(); }

    private:
        Progress& progress_;
    };

    /// Holds the lock if it was free, to start one operation. Needs stay_quiet() like post().
    class FreeGuard {
    public:
        explicit FreeGuard(Progress& progress) : progress_(progress) {
            progress_.enter("start an operation");
            locked_ = progress_.try_acquire();
            if (locked_) quiet_ = progress_.begin_changes();
        }
        FreeGuard(const FreeGuard&) = delete;
        FreeGuard& operator=(const FreeGuard&) = delete;
        ~FreeGuard() {
            if (!locked_) return;
            progress_.end_changes(quiet_);
            progress_.unlock();
        }

        bool locked() const noexcept { return locked_; }

    private:
        Progress& progress_;
        TimePoint quiet_{};
        bool locked_ = false;
    };

    /// Under the lock, in Driven::look() or an operation that its poster starts: what was done
    /// needs no turn() before `deadline`, so a driver may go on with look().
    void stay_quiet(std::optional<TimePoint> deadline) noexcept {
        calm_until_ = deadline.value_or(TimePoint::max());
    }

    /// Under the lock, in an operation that its poster starts: the poster has looked for arrivals
    /// at `now`, and does not wait. A thread that goes on like this must also drive now and then:
    /// the background thread would compete with it for the lock.
    void looked_in_place(TimePoint now) noexcept { looked_in_place_ = now; }

    /// Under the lock: whether another thread waits for it or has posted something.
    bool lock_is_wanted() const noexcept {
        return blocked_.load(std::memory_order_relaxed) != 0 || lock_.has_posted();
    }

    /// Marks that the calling thread runs user code. A wait() in it does not run other users'
    /// continuations; the background thread runs those that become due.
    class UserCode {
    public:
        UserCode() noexcept : outer_(std::exchange(in_user_code, true)) {}
        UserCode(const UserCode&) = delete;
        UserCode& operator=(const UserCode&) = delete;
        ~UserCode() { in_user_code = outer_; }

    private:
        bool outer_;
    };

    /// Under the lock: marks `completion` done; its owner may then destroy it. After the lock is
    /// released, its waiter wakes and its continuation runs.
    void complete(Completion& completion) noexcept;
    /// The same in Submission::run_by_poster(), for a completion that no other thread knows yet.
    static void complete_unshared(Completion& completion) noexcept { completion.finish_unshared(); }

    /// Drives, or sleeps while another thread drives, until `completion` is done. Returns false if
    /// the deadline passed. Polls at least once in any case, so that repeated calls with a past
    /// deadline make progress. Runs continuations that become due meanwhile, and returns after
    /// them.
    bool wait(Completion& completion, std::optional<TimePoint> deadline = std::nullopt);

    /// The same until one of them is done; returns the index of the first that is, or nullopt if
    /// the deadline passed. No completion may appear twice.
    std::optional<std::size_t> wait_any(std::span<Completion* const> completions,
                                        std::optional<TimePoint> deadline = std::nullopt);

    /// Drives until `completion` is done, for a thread that has nothing else to do. Yields to
    /// waiting threads, and does not resume driving when they are done. Returns whether
    /// `completion` is done. Only with a background thread.
    bool stand_by(Completion& completion);

    /// Whether other threads compete for the driver's processor.
    bool crowded() const noexcept { return crowd_.here(); }

    /// The number of processes of this job on this host, this one included. If they outnumber the
    /// usable processors, drivers yield at once instead of spinning. May be called under the lock.
    void set_local_ranks(std::size_t ranks) noexcept;

    /// Withdraws a continuation registered with `completion.then()`. Returns false if it has run or
    /// is running in another thread.
    bool withdraw(Completion& completion, Continuation& continuation);

    /// Runs `posted` under the lock: at once, or soon in the thread that holds the lock. Waits for
    /// the lock only if the queue is full. Submissions of one thread run in order, and before
    /// anything that it does under a later Guard.
    void post(Submission& posted);

    // For a user's event loop: call poll() whenever descriptor() is readable and when
    // next_deadline() has passed, then call next_deadline() again. One thread at a time.

    int descriptor() const noexcept { return poller_.descriptor(); }
    std::optional<TimePoint> next_deadline();
    /// Runs one bounded turn, unless another thread drives, and the continuations that are due.
    void poll();

    /// Ends and joins the background thread, and runs the continuations that are due. Waiting
    /// threads continue and drive themselves; nothing else drives from now on. For one thread.
    /// Throws Error(Errc::reentrant_call) in a continuation that the background thread runs.
    void stop();

    /// Under the lock: true in a continuation, where no other continuation can run before it
    /// returns.
    bool in_continuation() const noexcept {
        return running_ && pthread_equal(runner_, pthread_self()) != 0;
    }

private:
    enum class Outcome : std::uint8_t { told, expired, claimed };

    Progress(const Options& options, Poller poller);

    // progress.cpp: the lock, and the wakeups due when it is released
    struct Calls {
        bool wake = false;    // wake the sleeping driver
        bool driver = false;  // find a driver: one is needed and none sleeps
        bool summon = false;  // summon the user's loop
        bool relief = false;  // the background thread must run what the driver must not
    };
    void enter(const char* doing) const;
    TimePoint begin_changes() noexcept {
        calm_until_ = TimePoint::min();
        return std::exchange(quiet_until_, TimePoint::min());
    }
    void end_changes(TimePoint quiet) noexcept { quiet_until_ = std::min(quiet, calm_until_); }
    void lock() noexcept;
    bool try_lock() noexcept;
    void acquire() noexcept;
    bool try_acquire() noexcept;
    void unlock() noexcept;
    bool release_and_call(const Calls& calls) noexcept;
    void give_way() noexcept;
    void drain_posted() noexcept;
    Calls settle() noexcept;
    bool settle_user_loop(bool needed) noexcept;
    void summon_driver() noexcept;
    std::optional<TimePoint> earliest() const noexcept;

    // progress_wait.cpp
    // A thread that waits for one completion enlists in it only before it sleeps.
    struct Wait {
        bool over() const noexcept {
            return waiter.told() || (unlisted != nullptr && unlisted->done());
        }
        // Returns false if there is nothing to wait for.
        bool enlist() noexcept {
            if (unlisted == nullptr) return !waiter.told();
            if (!unlisted->enlist(waiter)) return false;
            unlisted = nullptr;
            return true;
        }

        Waiter waiter{};
        Completion* unlisted = nullptr;
    };
    void wait_as(Wait& wait, std::optional<TimePoint> deadline);
    Outcome drive(Wait& wait, std::optional<TimePoint> deadline, bool gives_way = false) noexcept;
    void sleep_driving(Wait& wait, std::optional<TimePoint> deadline) noexcept;
    void release_baton() noexcept;
    void follow(const Baton::Follow& follow) noexcept;

    // progress_turn.cpp, also the user's own loop
    struct Turn {
        bool active = false;
        bool claimed = false;  // this thread must run_claimed()
    };
    Turn turn(TimePoint& now, TimePoint look_until, const Wait* wait) noexcept;
    Turn turn_locked(TimePoint now, bool may_claim) noexcept;
    std::optional<Baton::Taken> drive_in_place() noexcept;
    bool look_repeatedly(TimePoint& now, TimePoint until) noexcept;
    bool look(TimePoint now) noexcept;
    bool claim() noexcept;
    static bool goes_on(Spin& spin, bool active, TimePoint now) noexcept;
    bool lull() noexcept;
    void rouse() noexcept;
    void lull_for_user_loop() noexcept;
    std::optional<TimePoint> fall_asleep() noexcept;
    void count_processors(TimePoint now) noexcept;
    void run_claimed();

    Spin waiting_spin() noexcept {
        return {options_.spin.value_or(kDefaultSpin), crowd_, options_.waiting};
    }
    // Sleeps also if waiting threads must not: no thread waits.
    Spin background_spin() noexcept {
        const bool spins = options_.waiting != Waiting::sleep;
        return {std::min(options_.spin.value_or(kDefaultSpin), kBackgroundSpin), crowd_,
                spins ? Waiting::automatic : Waiting::sleep};
    }

    // progress_background.cpp
    Result<void> start_thread();
    void join(pthread_t thread);
    void run_background();
    void drive_background();
    bool run_due();
    bool rest() noexcept;
    bool runs_continuations() const noexcept { return options_.drive == Drive::background; }

    static thread_local constinit bool in_user_code;

    const Options options_;
    const ForkGuard fork_guard_;
    Poller poller_;
    Baton baton_;

    LoopLock lock_;                          // its flag: posted_ is not empty
    std::atomic<pthread_t> owner_{};         // the holder of lock_, or 0
    std::atomic<std::uint32_t> blocked_{0};  // threads blocked on lock_
    BoundedQueue<std::reference_wrapper<Submission>> posted_;

    // Guarded by lock_.
    std::vector<Driven*> driven_{};
    ContinuationQueue due_{};
    bool running_ = false;                      // a thread runs due continuations
    pthread_t runner_{};                        // that thread, while running_
    bool barred_ = false;                       // the last driver must not run them
    const Waiter* sleeper_ = nullptr;           // the driver, if it is a waiter and asleep_
    bool told_driver_ = false;                  // the sleeping driver's own completion is done
    bool asleep_ = false;                       // the driver sleeps or is about to
    bool lulled_ = false;                       // see lull()
    bool missed_ = false;                       // something arrived that woke nobody
    TimePoint wake_at_{};                       // the driver's deadline, while asleep_
    TimePoint quiet_until_ = TimePoint::min();  // until then look() is enough
    TimePoint calm_until_ = TimePoint::min();   // see stay_quiet()
    TimePoint looked_in_place_ = TimePoint::min();
    TimePoint drive_in_place_at_ = TimePoint::min();
    bool summoned_ = false;                   // summoned the user's loop, which has not polled yet
    bool loop_polls_ = false;                 // between poll() and next_deadline()
    TimePoint announced_ = TimePoint::max();  // the deadline that the user's loop knows
    PendingWakes wakes_{};

    std::atomic<bool> relief_{false};  // the background thread must run due continuations
    std::atomic<bool> stopping_{false};
    Crowd crowd_{};
    std::atomic<std::size_t> local_ranks_{0};  // 0: unknown
    TimePoint count_again_{};                  // for the holder of the baton
    std::optional<pthread_t> thread_{};        // not std::thread, which a child could not abandon
};

}  // namespace nexar::runtime
