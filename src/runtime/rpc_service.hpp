#pragma once

#include <atomic>
#include <memory>
#include <nexar/rpc.hpp>
#include <optional>
#include <stop_token>
#include <unordered_map>
#include <vector>

#include "engine/call.hpp"
#include "runtime/completion.hpp"
#include "runtime/progress.hpp"
#include "runtime/rpc_pool.hpp"

namespace nexar::detail {

class NodeBody;
class RpcService;

/// A call that was given to a pool or an executor: runs the function, and answers.
class CallJob final : public runtime::RpcJob,
                      public runtime::Submission,
                      public std::enable_shared_from_this<CallJob> {
public:
    CallJob(std::shared_ptr<NodeBody> node, std::shared_ptr<ServedFunction> function,
            engine::InCall& call);
    /// Answers, if nobody ran it.
    ~CallJob() override;

    void run() noexcept override;
    void turn_away() noexcept override;
    /// Answers.
    void run_under_lock() noexcept override;

    /// Under the loop's lock. It will not be run; true: it has not begun.
    bool drop() noexcept { return begin(); }
    engine::InCall& call() noexcept { return *call_; }

    /// Under the loop's lock: what the executor, or the stop token, is told when the lock is free.
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
    std::shared_ptr<CallJob> posted_{};  // itself, until the answer is given
    Deferred hand_over_{};
    Deferred stopping_{};
};

/// A function of the user that is served.
class ServedFunction : public std::enable_shared_from_this<ServedFunction> {
public:
    engine::Function entry{};
    RawFunction function{};
    Executor executor{};
    runtime::RpcQueue queue{};
    std::shared_ptr<NodeBody> node{};
    // With the executor and not begun. Guarded by the loop's lock.
    std::unordered_map<const CallJob*, std::weak_ptr<CallJob>> outside{};
    bool stopped = false;
};

/// What a node needs to serve functions; made with the first one.
class RpcService {
public:
    RpcService(NodeBody& node, const RpcOptions& options, bool stands_by);

    Result<void> start() { return pool_.start(); }

    // Under the loop's lock.
    Result<void> add(std::shared_ptr<ServedFunction> function);
    bool dispatch(TimePoint now);
    std::optional<TimePoint> next_deadline() const noexcept { return pool_.next_deadline(); }
    void advance(TimePoint now) { pool_.advance(now); }

    /// Nothing of it is called any more, and nothing runs.
    void end(ServedFunction& function);

    /// Ends all functions, and the threads.
    void close();

    bool runs_here() const noexcept { return pool_.runs_here(); }
    runtime::RpcPool& pool() noexcept { return pool_; }

private:
    NodeBody* node_;
    runtime::RpcPool pool_;
    std::vector<std::shared_ptr<ServedFunction>> functions_{};
};

}  // namespace nexar::detail
