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

/// A job that a pool runs.
class RpcJob {
public:
    RpcJob() = default;
    RpcJob(const RpcJob&) = delete;
    RpcJob& operator=(const RpcJob&) = delete;
    virtual ~RpcJob() = default;
    /// Called without any lock.
    virtual void run() noexcept = 0;
    /// Called instead of run() if no thread is available; without any lock.
    virtual void turn_away() noexcept = 0;
};

/// The jobs of one function in its pool. Guarded by the pool's lock.
struct RpcQueue {
    std::deque<std::shared_ptr<RpcJob>> waiting{};
    int running = 0;
    /// Typical duration of a job; Duration::max() if unknown.
    Duration typical = Duration::max();
};

/// The threads that run the functions of a node.
///
/// An idle thread of the pool stands by and drives the loop. If a function is known to be quick,
/// the thread that receives a call also runs it, so the call costs no wakeup. If a job takes longer
/// than expected, the pool wakes another thread for the waiting jobs after a millisecond.
///
/// Up to `size` jobs run at once, not counting those that wait for a Work. In addition, every
/// function may always run one job. In all there are at most kMostThreads threads. If the other
/// threads wait for Works and no further thread can be created, the pool turns the job away. The
/// threads block signals.
class RpcPool {
public:
    static constexpr std::size_t kMostThreads = 64;

    /// `stands_by`: idle threads stand by, which requires a loop with a background thread.
    RpcPool(Progress& progress, std::size_t size, bool stands_by) noexcept
        : progress_(progress), size_(size), stands_by_(stands_by) {}
    ~RpcPool();

    /// Starts the first thread.
    Result<void> start();

    /// Under the loop's lock. Returns false if no thread is available for the job.
    bool add(RpcQueue& queue, std::shared_ptr<RpcJob> job, TimePoint now);
    /// Under the loop's lock: removes and returns the jobs that have not begun.
    std::deque<std::shared_ptr<RpcJob>> take_back(RpcQueue& queue);

    // Under the loop's lock: wakes more threads if jobs have been waiting too long.
    std::optional<TimePoint> next_deadline() const noexcept;
    void advance(TimePoint now);

    /// Waits until no job of `queue` runs except the caller's own. Returns false if the caller runs
    /// one.
    bool await_idle(const RpcQueue& queue);

    /// Waits for running jobs and ends all threads. Drops jobs that have not begun.
    void stop();

    /// Whether the calling thread belongs to this pool.
    bool runs_here() const noexcept;

    /// Marks that a thread outside the pool runs a job: await_idle() waits for it, except in that
    /// thread itself.
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
        const Running* outer_;  // the enclosing one of this thread
    };

    /// Marks that the calling thread, if it runs a job of a pool, waits for a Work.
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
    /// The state of a thread of a pool.
    struct Thread {
        RpcPool* pool = nullptr;
        const RpcQueue* queue = nullptr;  // the queue of the job that it runs
        bool waiting = false;             // for a Work, inside the job
    };
    static thread_local constinit Thread* current_thread;
    static thread_local constinit const Running* current_run;

    using Lock = std::unique_lock<std::mutex>;

    void work();
    std::shared_ptr<RpcJob> take(RpcQueue*& queue);
    void run(Lock& lock, RpcQueue& queue, std::shared_ptr<RpcJob> job);
    bool may_run(const RpcQueue& queue) const noexcept;
    bool any_runnable() const noexcept;
    /// Wakes or starts another thread to look for jobs. Returns false if neither is possible.
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
    std::size_t active_ = 0;    // threads that run a job and do not wait for a Work
    std::size_t idle_ = 0;      // threads that wait to be woken
    std::size_t notified_ = 0;  // idle threads that were notified but are not awake yet
    std::size_t coming_ = 0;    // notified and new threads that have not begun to look for jobs
    bool standing_by_ = false;
    bool told_ = false;  // the thread that stands by was notified of a job
    Completion job_came_{};
    TimePoint last_taken_{};  // when a job last began or was added to an empty pool, for advance()
    bool stopping_ = false;
};

}  // namespace nexar::runtime
