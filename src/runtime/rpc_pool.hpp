#pragma once

#include <pthread.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/time.hpp"
#include "runtime/progress.hpp"

namespace nexar::runtime {

/// What a pool runs.
class RpcJob {
public:
    RpcJob() = default;
    RpcJob(const RpcJob&) = delete;
    RpcJob& operator=(const RpcJob&) = delete;
    virtual ~RpcJob() = default;
    /// Without any lock.
    virtual void run() noexcept = 0;
    /// There is no thread for it: instead of run(), and without any lock.
    virtual void turn_away() noexcept = 0;
};

/// The jobs of one function, as its pool knows them. Guarded by the pool's lock.
struct RpcQueue {
    std::deque<std::shared_ptr<RpcJob>> waiting{};
    int running = 0;
    /// How long a job takes, as far as is known.
    Duration typical = Duration::max();
};

/// Threads that run the functions of a node.
///
/// A job whose function is known to be quick is run by the thread that received it: a thread of
/// the pool that has nothing to do stands by and drives the loop, so a call costs no wake-up. When
/// a job takes longer than expected, others are called after a millisecond.
///
/// So many jobs run at once: `size`, not counting those that wait for a Work; and one of every
/// function of which none runs; in all at most kMostThreads. A job that no thread can be made for
/// while others wait for Works is turned away. Threads block signals.
class RpcPool {
public:
    static constexpr std::size_t kMostThreads = 64;

    /// `stands_by`: the loop has a background thread.
    RpcPool(Progress& progress, std::size_t size, bool stands_by) noexcept
        : progress_(progress), size_(size), stands_by_(stands_by) {}
    ~RpcPool();

    /// Makes the first thread.
    Result<void> start();

    /// Under the loop's lock. False: there is no thread for it.
    bool add(RpcQueue& queue, std::shared_ptr<RpcJob> job, TimePoint now);
    /// Under the loop's lock: what was added and not begun.
    std::deque<std::shared_ptr<RpcJob>> take_back(RpcQueue& queue);

    // Under the loop's lock: calls more threads when jobs wait for longer than they should.
    std::optional<TimePoint> next_deadline() const noexcept;
    void advance(TimePoint now);

    /// Waits until no job of it runs but the caller's own; false: there is such a one.
    bool await_idle(const RpcQueue& queue);

    /// Waits for the jobs that run, and ends all threads. What was not begun is forgotten.
    void stop();

    /// Whether the calling thread is one of this pool.
    bool runs_here() const noexcept;

    /// While a thread that is not of the pool runs a job: await_idle() waits for it, but not in
    /// that thread itself.
    class Running {
    public:
        Running(RpcPool& pool, RpcQueue& queue);
        Running(const Running&) = delete;
        Running& operator=(const Running&) = delete;
        ~Running();

    private:
        friend class RpcPool;
        RpcPool* pool_;
        RpcQueue* queue_;
        const Running* outer_;  // that the thread was in before
    };

    /// While the calling thread, if it runs a job of a pool, waits for a Work.
    class Waiting {
    public:
        Waiting() noexcept {
            if (current_thread != nullptr) begin();
        }
        Waiting(const Waiting&) = delete;
        Waiting& operator=(const Waiting&) = delete;
        ~Waiting() {
            if (began_) end();
        }

    private:
        void begin() noexcept;
        static void end() noexcept;
        bool began_ = false;
    };

private:
    /// What a thread of a pool is doing.
    struct Thread {
        RpcPool* pool = nullptr;
        const RpcQueue* queue = nullptr;  // whose job it runs
        bool waiting = false;             // for a Work, inside of it
    };
    static thread_local constinit Thread* current_thread;
    static thread_local constinit const Running* current_run;

    using Lock = std::unique_lock<std::mutex>;

    void work();
    std::shared_ptr<RpcJob> take(RpcQueue*& queue);
    void run(Lock& lock, RpcQueue& queue, std::shared_ptr<RpcJob> job);
    bool may_run(const RpcQueue& queue) const noexcept;
    bool any_runnable() const noexcept;
    /// Another thread that will look for jobs; false: there is none and none can be made.
    bool call_thread();
    bool call_standing_by();
    Result<void> make_thread();

    Progress& progress_;
    const std::size_t size_;
    const bool stands_by_;

    mutable std::mutex mutex_;
    std::condition_variable called_;
    std::condition_variable ended_;
    std::deque<RpcQueue*> queues_{};  // those with waiting jobs
    std::vector<pthread_t> threads_{};
    std::size_t active_ = 0;    // run a job and do not wait for a Work
    std::size_t idle_ = 0;      // wait to be called
    std::size_t notified_ = 0;  // of the idle ones, not awake yet
    std::size_t coming_ = 0;    // these, and new ones that have not begun to look for jobs
    bool standing_by_ = false;
    bool told_ = false;  // who stands by, of a job
    Completion job_came_{};
    TimePoint last_taken_{};  // when a job was begun or added to none, for advance()
    bool stopping_ = false;
};

}  // namespace nexar::runtime
