#pragma once

#include <atomic>
#include <memory>
#include <nexar/rpc.hpp>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "engine/calls.hpp"
#include "runtime/completion.hpp"
#include "runtime/progress.hpp"
#include "runtime/rpc_pool.hpp"

namespace nexar::detail {

class NodeBody;
class RpcService;

/// A call in a pool or an executor: runs the function and sends the response.
class CallJob final : public runtime::RpcJob,
                      public runtime::Submission,
                      public std::enable_shared_from_this<CallJob> {
public:
    CallJob(std::shared_ptr<NodeBody> node, std::shared_ptr<ServedFunction> function,
            engine::InCall& call);
    /// Sends an error to the caller if the job never ran.
    ~CallJob() override;

    void run() noexcept override;
    void turn_away() noexcept override;
    /// Sends the response.
    void run_under_lock() noexcept override;

    /// Under the loop's lock. Prevents the job from running; returns false if it has already begun.
    bool drop() noexcept { return begin(); }
    engine::InCall& call() noexcept { return *call_; }

    /// Under the loop's lock: schedules the call of the executor for when the lock is free.
    void hand_over();
    void ask_to_stop();

private:
    class Deferred final : public runtime::Continuation {
    public:
        using Action = void (CallJob::*)();
        void run() noexcept override;
        std::shared_ptr<CallJob> job{};  // until it has run
        Action action = nullptr;
        runtime::Completion due{};
    };

    bool begin() noexcept { return !begun_.exchange(true, std::memory_order_acq_rel); }
    void schedule(Deferred& step, Deferred::Action action);
    void execute();
    void request_stop() { stop_.request_stop(); }
    void answer(Result<Payload> result);
    Result<Payload> result_of_function() noexcept;

    std::shared_ptr<NodeBody> node_;
    std::shared_ptr<ServedFunction> function_;
    engine::InCall* call_;
    std::stop_source stop_{};
    std::atomic<bool> begun_{false};
    Result<Payload> result_ = Payload{};
    std::shared_ptr<CallJob> posted_{};  // itself, until the response is sent
    Deferred hand_over_{};
    Deferred stopping_{};
};

/// A user's function that the node serves.
class ServedFunction : public std::enable_shared_from_this<ServedFunction> {
public:
    engine::Function entry{};
    RawFunction function{};
    Executor executor{};
    runtime::RpcQueue queue{};
    std::shared_ptr<NodeBody> node{};
    // Jobs handed to the executor that have not begun. Guarded by the loop's lock.
    std::unordered_map<const CallJob*, std::weak_ptr<CallJob>> outside{};
    bool stopped = false;
};

/// The state that a node needs to serve functions; created with the first one.
class RpcService {
public:
    RpcService(NodeBody& node, const RpcOptions& options, bool stands_by);

    Result<void> start() { return pool_.start(); }

    // Under the loop's lock.
    Result<void> add(engine::Calls& calls, std::shared_ptr<ServedFunction> function);
    bool dispatch(engine::Calls& calls, TimePoint now);
    std::optional<TimePoint> next_deadline() const noexcept { return pool_.next_deadline(); }
    void advance(TimePoint now) { pool_.advance(now); }

    /// Stops serving `function`; returns when no call of it runs.
    void end(ServedFunction& function);

    /// Stops serving all functions and ends the threads.
    void close();

    bool runs_here() const noexcept { return pool_.runs_here(); }
    runtime::RpcPool& pool() noexcept { return pool_; }

private:
    NodeBody* node_;
    runtime::RpcPool pool_;
    std::vector<std::shared_ptr<ServedFunction>> functions_{};
};

}  // namespace nexar::detail
