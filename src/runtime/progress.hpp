#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
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
#include "runtime/progress_poller.hpp"
#include "runtime/spin.hpp"

namespace nexar::runtime {

/// What a loop drives: the carriers and the engine of one node. Called only under the loop's lock,
/// and must not call the loop except for Progress::complete().
class Driven {
public:
    virtual ~Driven() = default;

    /// The same from add() to remove(), with the same descriptors, which are watched.
    virtual std::span<port::Carrier* const> carriers() const noexcept = 0;

    /// on_ready, flush, events into the engine, flush; bounded. Whether anything happened: then the
    /// loop goes on without sleeping. `now` never goes back.
    virtual bool turn(TimePoint now) noexcept = 0;

    /// A turn before next_deadline(), when nothing else was done under the lock since then: so only
    /// what arrived can matter. A driver does this again and again while it spins.
    virtual bool look(TimePoint now) noexcept { return turn(now); }

    /// When turn() must be called at the latest although no descriptor is ready; not later than
    /// `now` when something was started that a turn has to send.
    virtual std::optional<TimePoint> next_deadline() const noexcept = 0;
};

/// An operation that a thread starts without waiting for the lock. The owner keeps it alive until
/// run_under_lock() begins, which may destroy it, and which must not call the loop except for
/// Progress::complete().
class Submission {
public:
    virtual ~Submission() = default;

    virtual void run_under_lock() noexcept = 0;
};

/// Drives the nodes of a process: polls their links and timers, tells who waits, and runs what
/// follows a completion.
///
/// One lock guards everything that is driven. Exactly one thread drives at a time, the one that
/// holds the baton (see Baton): a thread in wait(), else the background thread. The driver holds
/// the lock while it drives and never while it sleeps. User code (continuations) runs without lock
/// and baton, one at a time, in the order of completion; inside of it everything here may be
/// called, and a wait() there runs no other continuation. A continuation that blocks otherwise
/// holds up the other continuations and the thread that runs it, but no other thread that waits.
/// Other user code that we call says so with UserCode: a wait() inside of it runs none either.
///
/// Any thread may call. A child made by fork gets Error(Errc::forked) from every call that can
/// fail, except that remove(), stop() and the destructor do nothing to the parent. A call from
/// within turn() or run_under_lock() gets Error(Errc::reentrant_call).
class Progress {
public:
    enum class Drive : std::uint8_t {
        background,  // a thread of ours, where no caller drives
        user_loop,   // poll(), called by a loop of the user; only there continuations run
    };
    struct Options {
        Drive drive = Drive::background;
        /// How long a driver goes on polling after something happened, before it sleeps.
        Duration spin = std::chrono::microseconds(20);
        /// How often the background thread looks whether callers still drive.
        Duration look = std::chrono::milliseconds(1);
        /// Operations that may be posted while the lock is held.
        std::size_t posted_capacity = 1024;
    };

    static Result<std::unique_ptr<Progress>> make(const Options& options);

    /// Whether this process is a child of the one that made it.
    bool forked() const noexcept { return fork_guard_.forked(); }

    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Stops. Nothing may be driven, and no thread may wait, any more; continuations that did not
    /// run are forgotten.
    ~Progress();

    /// `driven` must live until remove(). Fails when its descriptors cannot be watched.
    Result<void> add(Driven& driven);

    /// Returns when it is not used any more. Also inside a continuation.
    void remove(Driven& driven);

    /// Holds the lock, to start operations. When it is released, everything that became complete is
    /// made known, and a driver that sleeps is woken if it is needed earlier than it knew.
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

    /// While the calling thread runs user code that may wait and must not find itself inside of
    /// somebody else's continuation: the background thread runs those that become due.
    class UserCode {
    public:
        UserCode() noexcept : outer_(std::exchange(in_user_code, true)) {}
        UserCode(const UserCode&) = delete;
        UserCode& operator=(const UserCode&) = delete;
        ~UserCode() { in_user_code = outer_; }

    private:
        bool outer_;
    };

    /// Under the lock: `completion` is done, and may be destroyed from here on. Who waits for it is
    /// woken, and what follows it is run, after the lock was released.
    void complete(Completion& completion) noexcept;

    /// Drives, or sleeps while another thread drives, until it is done. False: the deadline passed.
    /// Looks once at what arrived even then, so that asking again and again makes progress. Runs
    /// continuations that become due meanwhile, and returns after them.
    bool wait(Completion& completion, std::optional<TimePoint> deadline = std::nullopt);

    /// The same until one of them is done: the index of the first that is. None: the deadline
    /// passed. No completion may appear twice.
    std::optional<std::size_t> wait_any(std::span<Completion* const> completions,
                                        std::optional<TimePoint> deadline = std::nullopt);

    /// Drives until `completion` is done, for a thread that has nothing else to do: gives way to
    /// threads that wait, and is not woken again when they have what they waited for. True: it is
    /// done. Only with a background thread.
    bool stand_by(Completion& completion);

    /// Within turn(): whether others wait for the processor of the driver.
    bool crowded() const noexcept { return crowd_.here(); }

    /// Takes back what was given to `completion.then()`. False: it has run, or runs now in another
    /// thread.
    bool withdraw(Completion& completion, Continuation& continuation);

    /// Runs it under the lock, now, or soon in the thread that holds the lock. Waits for the lock
    /// only when the queue is full. What one thread posts runs in order, and before what it does
    /// under a later Guard.
    void post(Submission& posted);

    // For a loop of the user: call poll() whenever descriptor() is readable and when
    // next_deadline() has come, then ask for next_deadline() again. One thread at a time.

    int descriptor() const noexcept { return poller_.descriptor(); }
    std::optional<TimePoint> next_deadline();
    /// One bounded turn, unless another thread drives, and the continuations that are due.
    void poll();

    /// Ends the background thread, joins it, and runs the continuations that are due. Threads that
    /// wait go on and drive themselves; from now on nothing else drives. For one thread.
    /// Throws Error(Errc::reentrant_call) in a continuation that the background thread runs.
    void stop();

private:
    enum class Outcome : std::uint8_t { told, expired, claimed };

    Progress(const Options& options, Poller poller);

    // progress.cpp: the lock, and what is settled when it is released
    struct Calls {
        bool wake = false;    // the driver, who sleeps
        bool driver = false;  // a driver is needed, and none sleeps
        bool summon = false;  // the user's loop
        bool relief = false;  // the background thread, for what the driver must not run
    };
    void enter(const char* doing) const;
    void lock() noexcept;
    bool try_lock() noexcept;
    void acquire() noexcept;
    bool try_acquire() noexcept;
    void unlock() noexcept;
    void release_and_call(const Calls& calls) noexcept;
    void give_way() noexcept;
    void drain_posted() noexcept;
    Calls settle() noexcept;
    bool settle_user_loop(bool continues) noexcept;
    void summon_driver() noexcept;
    std::optional<TimePoint> earliest() const noexcept;

    // progress_wait.cpp
    void wait_as(Waiter& waiter, std::optional<TimePoint> deadline);
    Outcome drive(Waiter& waiter, std::optional<TimePoint> deadline,
                  bool gives_way = false) noexcept;
    void sleep_driving(const Waiter& waiter, std::optional<TimePoint> deadline) noexcept;
    void release_baton(Waiter& waiter) noexcept;
    void follow(const Baton::Follow& follow) noexcept;

    // progress_turn.cpp, also the user's own loop
    struct Turn {
        bool active = false;
        bool claimed = false;  // this thread must run_claimed()
    };
    Turn turn(TimePoint now) noexcept;
    Turn turn_locked(TimePoint now, bool may_claim) noexcept;
    bool claim() noexcept;
    static bool goes_on(Spin& spin, bool active, TimePoint now) noexcept;
    std::optional<TimePoint> fall_asleep() noexcept;
    void run_claimed();

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

    std::mutex mutex_;
    std::atomic<pthread_t> owner_{};         // who holds mutex_, 0 for nobody
    std::atomic<std::uint32_t> blocked_{0};  // threads that sleep until they get mutex_
    BoundedQueue<std::reference_wrapper<Submission>> posted_;
    std::atomic<std::uint32_t> has_posted_{0};  // see unlock()

    // Guarded by mutex_.
    std::vector<Driven*> driven_{};
    ContinuationQueue due_{};
    bool running_ = false;                      // a thread runs what is due
    bool barred_ = false;                       // the last driver must not run it
    bool told_driver_ = false;                  // the driver's own wait is over
    bool asleep_ = false;                       // the driver sleeps, or is about to
    TimePoint wake_at_{};                       // at the latest, while asleep_
    TimePoint quiet_until_ = TimePoint::min();  // until then a driver need only look(), see there
    bool summoned_ = false;                     // the user's loop was called and has not come yet
    TimePoint announced_ = TimePoint::max();    // what the user's loop was told to wait for
    PendingWakes wakes_{};

    std::atomic<bool> relief_{false};  // the background thread is to run what is due
    std::atomic<bool> stopping_{false};
    Crowd crowd_{};
    std::optional<pthread_t> thread_{};  // a std::thread cannot be abandoned in a child
};

}  // namespace nexar::runtime
