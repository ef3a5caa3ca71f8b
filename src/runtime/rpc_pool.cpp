#include "runtime/rpc_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"

namespace nexar::runtime {

namespace {

// Jobs up to this duration are quick: waking a thread would cost as much.
constexpr Duration kQuick = std::chrono::microseconds(100);
// How long jobs wait for a busy thread before the pool wakes another one.
constexpr Duration kPatience = std::chrono::milliseconds(1);

// A thread that briefly lost its core must not make a quick function count as slow: that takes
// several slow runs, while a few quick ones undo it.
Duration blended(Duration typical, Duration taken) noexcept {
    if (typical == Duration::max()) return taken;
    if (taken < typical) return (typical + taken * 3) / 4;
    return (typical * 7 + std::min(taken, 4 * kQuick)) / 8;
}

}  // namespace

thread_local constinit RpcPool::Thread* RpcPool::current_thread = nullptr;
thread_local constinit const RpcPool::Running* RpcPool::current_run = nullptr;

RpcPool::Running::Running(RpcPool& pool, RpcQueue& queue)
    : pool_(&pool), queue_(&queue), outer_(std::exchange(current_run, this)) {
    const std::scoped_lock lock(pool.mutex_);
    ++queue.running;
}

RpcPool::Running::~Running() {
    current_run = outer_;
    const std::scoped_lock lock(pool_->mutex_);
    --queue_->running;
    pool_->ended_.notify_all();
}

RpcPool::~RpcPool() {
    NEXAR_ASSERT(threads_.empty(), "stop() the pool first");
}

Result<void> RpcPool::start() {
    const std::scoped_lock lock(mutex_);
    return make_thread();
}

// Under mutex_.
Result<void> RpcPool::make_thread() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const auto body = [](void* pool) -> void* {
        static_cast<RpcPool*>(pool)->work();
        return nullptr;
    };
    pthread_t thread{};
    const int error = pthread_create(&thread, nullptr, body, this);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error != 0) {
        return Error(Errc::bad_config,
                     fmt::format("cannot start a thread to run functions: {}; raise the limit on "
                                 "threads (ulimit -u)",
                                 std::strerror(error)));  // NOLINT(concurrency-mt-unsafe)
    }
    pthread_setname_np(thread, "nexar-rpc");
    threads_.push_back(thread);
    ++coming_;
    return {};
}

bool RpcPool::runs_here() const noexcept {
    return current_thread != nullptr && current_thread->pool == this;
}

bool RpcPool::may_run(const RpcQueue& queue) const noexcept {
    return active_ < size_ || queue.running == 0;
}

bool RpcPool::any_runnable() const noexcept {
    return std::ranges::any_of(queues_, [&](const RpcQueue* queue) { return may_run(*queue); });
}

// Under both locks.
bool RpcPool::call_standing_by() {
    if (!standing_by_ || told_) return false;
    told_ = true;
    progress_.complete(job_came_);
    return true;
}

bool RpcPool::call_thread() {
    if (idle_ > notified_) {
        ++notified_;
        ++coming_;
        called_.notify_one();
        return true;
    }
    if (threads_.size() < kMostThreads && !stopping_) return make_thread().has_value();
    return false;
}

bool RpcPool::add(RpcQueue& queue, std::shared_ptr<RpcJob> job, TimePoint now) {
    const std::scoped_lock lock(mutex_);
    if (queues_.empty()) last_taken_ = now;
    if (queue.waiting.empty()) queues_.push_back(&queue);
    queue.waiting.push_back(std::move(job));
    if (call_standing_by()) return true;
    // Quick jobs wait for the thread that was notified or that runs another quick job.
    const bool somebody_comes = told_ || coming_ > 0 || active_ > 0;
    if (queue.typical <= kQuick && somebody_comes) return true;
    const bool room = active_ + coming_ < size_;
    const bool alone = queue.running == 0 && queue.waiting.size() == 1;
    if (!(room || alone) || call_thread() || !room) return true;
    queue.waiting.pop_back();
    if (queue.waiting.empty()) std::erase(queues_, &queue);
    return false;
}

std::deque<std::shared_ptr<RpcJob>> RpcPool::take_back(RpcQueue& queue) {
    const std::scoped_lock lock(mutex_);
    std::erase(queues_, &queue);
    return std::exchange(queue.waiting, {});
}

std::optional<TimePoint> RpcPool::next_deadline() const noexcept {
    const std::scoped_lock lock(mutex_);
    if (queues_.empty() || !any_runnable()) return std::nullopt;
    return last_taken_ + kPatience;
}

void RpcPool::advance(TimePoint now) {
    const std::scoped_lock lock(mutex_);
    if (queues_.empty() || now < last_taken_ + kPatience || !any_runnable()) return;
    last_taken_ = now;
    if (!call_standing_by() && coming_ == 0) call_thread();
}

// Under mutex_. The next job that may run; takes the functions in turn.
std::shared_ptr<RpcJob> RpcPool::take(RpcQueue*& queue) {
    for (std::size_t left = queues_.size(); left > 0; --left) {
        queue = queues_.front();
        queues_.pop_front();
        if (!may_run(*queue)) {
            queues_.push_back(queue);
            continue;
        }
        auto job = std::move(queue->waiting.front());
        queue->waiting.pop_front();
        if (!queue->waiting.empty()) queues_.push_back(queue);
        return job;
    }
    return nullptr;
}

void RpcPool::run(Lock& lock, RpcQueue& queue, std::shared_ptr<RpcJob> job) {
    ++active_;
    last_taken_ = SteadyClock{}.now();
    const TimePoint began = last_taken_;
    const bool slow = queue.typical > kQuick;
    // Another thread must look for the next job while this one runs.
    const bool wanted = any_runnable() || (stands_by_ && !standing_by_);
    if (slow && wanted && coming_ == 0) call_thread();
    current_thread->queue = &queue;
    ++queue.running;  // before the lock is released, because may_run() reads it
    lock.unlock();
    // The job keeps the function and its queue alive.
    job->run();
    lock.lock();
    current_thread->queue = nullptr;
    queue.typical = blended(queue.typical, SteadyClock{}.now() - began);
    --active_;
    if (--queue.running == 0) ended_.notify_all();
    lock.unlock();
    job.reset();
    lock.lock();
}

void RpcPool::work() {
    Thread self{.pool = this};
    current_thread = &self;
    Lock lock(mutex_);
    --coming_;
    while (!stopping_) {
        RpcQueue* queue = nullptr;
        if (auto job = take(queue)) {
            run(lock, *queue, std::move(job));
            continue;
        }
        if (stands_by_ && !standing_by_) {
            standing_by_ = true;
            told_ = false;
            job_came_.rearm();
            lock.unlock();
            progress_.stand_by(job_came_);
            lock.lock();
            standing_by_ = false;
            // Without a notification, another thread drives; it wakes this one when there are jobs.
            if (std::exchange(told_, false) || !queues_.empty() || stopping_) continue;
        }
        ++idle_;
        called_.wait(lock, [this] { return notified_ > 0 || stopping_; });
        --idle_;
        if (notified_ == 0) continue;
        --notified_;
        --coming_;
    }
    current_thread = nullptr;
}

bool RpcPool::await_idle(const RpcQueue& queue) {
    int own = current_thread != nullptr && current_thread->queue == &queue ? 1 : 0;
    for (const Running* run = current_run; run != nullptr; run = run->outer_) {
        if (run->queue_ == &queue) ++own;
    }
    Lock lock(mutex_);
    ended_.wait(lock, [&] { return queue.running <= own; });
    return own == 0;
}

void RpcPool::stop() {
    std::vector<pthread_t> threads;
    {
        const Progress::Guard guard(progress_);
        const std::scoped_lock lock(mutex_);
        stopping_ = true;
        call_standing_by();
        called_.notify_all();
        threads = std::exchange(threads_, {});
    }
    for (const pthread_t thread : threads) {
        const int joined = pthread_join(thread, nullptr);
        NEXAR_ASSERT(joined == 0);
    }
}

void RpcPool::Waiting::begin() noexcept {
    Thread& thread = *current_thread;
    if (thread.waiting || thread.queue == nullptr) return;
    began_ = true;
    thread.waiting = true;
    RpcPool& pool = *thread.pool;
    std::vector<std::shared_ptr<RpcJob>> stranded;
    {
        const std::scoped_lock lock(pool.mutex_);
        --pool.active_;
        if (pool.any_runnable() && pool.coming_ == 0 && !pool.told_ && !pool.call_thread() &&
            pool.active_ == 0) {
            // All threads are waiting, possibly for the very jobs in these queues.
            for (RpcQueue* queue : std::exchange(pool.queues_, {})) {
                for (auto& job : std::exchange(queue->waiting, {})) {
                    stranded.push_back(std::move(job));
                }
            }
        }
    }
    for (const auto& job : stranded) job->turn_away();
}

void RpcPool::Waiting::end() noexcept {
    Thread& thread = *current_thread;
    thread.waiting = false;
    const std::scoped_lock lock(thread.pool->mutex_);
    ++thread.pool->active_;
}

}  // namespace nexar::runtime
