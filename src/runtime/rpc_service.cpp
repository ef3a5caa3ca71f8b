#include "runtime/rpc_service.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "runtime/node_access.hpp"

namespace nexar::detail {

namespace {

std::size_t pool_size(const RpcOptions& options) {
    if (options.threads > 0) {
        return std::min<std::size_t>(static_cast<std::size_t>(options.threads),
                                     runtime::RpcPool::kMostThreads);
    }
    constexpr unsigned kLeast = 8;
    return std::min<std::size_t>(std::max(kLeast, std::thread::hardware_concurrency()),
                                 runtime::RpcPool::kMostThreads);
}

Error overloaded() {
    return {Errc::overloaded,
            fmt::format("all {} threads that run functions are waiting for a Work",
                        runtime::RpcPool::kMostThreads)};
}

}  // namespace

CallJob::CallJob(std::shared_ptr<NodeBody> node, std::shared_ptr<ServedFunction> function,
                 engine::InCall& call)
    : node_(std::move(node)), function_(std::move(function)), call_(&call) {}

namespace {

/// Sends an error to the caller of a job that was destroyed.
class Apology final : public runtime::Submission {
public:
    Apology(std::shared_ptr<NodeBody> node, std::shared_ptr<ServedFunction> function,
            const CallJob* job, engine::InCall& call)
        : node_(std::move(node)), function_(std::move(function)), job_(job), call_(&call) {}

    void run_under_lock() noexcept override {
        const std::unique_ptr<Apology> self(this);
        function_->outside.erase(job_);
        node_->respond(
            *call_, Error(Errc::function_failed, "the executor of the function dropped the call"));
    }

private:
    std::shared_ptr<NodeBody> node_;
    std::shared_ptr<ServedFunction> function_;
    const CallJob* job_;
    engine::InCall* call_;
};

}  // namespace

CallJob::~CallJob() {
    if (!begin()) return;
    auto apology = std::make_unique<Apology>(node_, function_, this, *call_);
    node_->progress().post(*apology.release());  // deletes itself
}

void CallJob::Deferred::run() noexcept {
    const std::shared_ptr<CallJob> kept = std::move(job);
    (kept.get()->*action)();
}

void CallJob::schedule(Deferred& step, Deferred::Action action) {
    step.job = shared_from_this();
    step.action = action;
    const bool follows = step.due.then(step);
    NEXAR_ASSERT(follows, "a step is scheduled once");
    node_->progress().complete(step.due);
}

void CallJob::hand_over() {
    function_->outside.emplace(this, weak_from_this());
    schedule(hand_over_, &CallJob::execute);
}

void CallJob::ask_to_stop() {
    schedule(stopping_, &CallJob::request_stop);
}

/// Passes itself to the user's executor.
void CallJob::execute() {
    // A thread that stops serving the function first drops the job, so that it is not handed over,
    // and then waits for this scope.
    const runtime::RpcPool::Running running(node_->rpc().pool(), function_->queue);
    if (begun_.load(std::memory_order_acquire)) return;
    try {
        function_->executor([self = shared_from_this()] { self->run(); });
    } catch (...) {  // the destructor of the last copy sends the error
        return;
    }
}

Result<Payload> CallJob::result_of_function() noexcept {
    Call call{.caller = static_cast<int>(call_->caller.value()),
              .argument = call_->argument,
              .stop = stop_.get_token()};
    if (call_->deadline) {
        call.deadline = std::chrono::steady_clock::time_point(
            std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                call_->deadline->time_since_epoch()));
    }
    const runtime::Progress::UserCode here;
    try {
        return function_->function(call);
    } catch (const std::exception& thrown) {
        return Error(Errc::function_failed, thrown.what());
    } catch (...) {
        return Error(Errc::function_failed,
                     "the function threw an object that is not a std::exception");
    }
}

void CallJob::run() noexcept {
    std::optional<runtime::RpcPool::Running> running;
    if (function_->executor) running.emplace(node_->rpc().pool(), function_->queue);
    if (begin()) answer(result_of_function());
}

void CallJob::turn_away() noexcept {
    if (begin()) answer(overloaded());
}

void CallJob::answer(Result<Payload> result) {
    result_ = std::move(result);
    posted_ = shared_from_this();
    node_->progress().post(*this);
}

void CallJob::run_under_lock() noexcept {
    const std::shared_ptr<CallJob> kept = std::move(posted_);
    const std::shared_ptr<NodeBody> node = node_;
    function_->outside.erase(this);
    node->respond(*call_, std::move(result_));
}

RpcService::RpcService(NodeBody& node, const RpcOptions& options, bool stands_by)
    : node_(&node), pool_(node.progress(), pool_size(options), stands_by) {}

bool RpcService::dispatch(engine::Calls& calls, TimePoint now) {
    bool any = false;
    while (engine::InCall* call = calls.poll_call()) {
        any = true;
        auto& function = *static_cast<ServedFunction*>(call->function->owner);
        auto job = std::make_shared<CallJob>(node_->shared_from_this(), function.shared_from_this(),
                                             *call);
        call->owner = job.get();
        if (function.executor) {
            job->hand_over();
        } else if (!pool_.add(function.queue, job, now)) {
            const bool dropped = job->drop();
            NEXAR_ASSERT(dropped);
            calls.respond(*call, overloaded());
        }
    }
    while (engine::InCall* call = calls.poll_stopped()) {
        any = true;
        static_cast<CallJob*>(call->owner)->ask_to_stop();
    }
    return any;
}

void RpcService::end(ServedFunction& function) {
    const Error gone(Errc::unknown_function, "the function is no longer served");
    std::vector<std::shared_ptr<runtime::RpcJob>> jobs;  // destroyed without the lock
    {
        const NodeAccess node(*node_);
        if (std::exchange(function.stopped, true)) return;
        node->calls().remove(function.entry);
        for (auto& job : pool_.take_back(function.queue)) {
            auto& dropped = static_cast<CallJob&>(*job);
            if (dropped.drop()) node->calls().respond(dropped.call(), gone);
            jobs.push_back(std::move(job));
        }
        for (const auto& [address, weak] : std::exchange(function.outside, {})) {
            const auto job = weak.lock();
            if (job && job->drop()) node->calls().respond(job->call(), gone);
            if (job) jobs.push_back(job);
        }
        std::erase_if(functions_, [&](const auto& one) { return one.get() == &function; });
    }
    jobs.clear();
    // Destroys the user's function here, and not later under the loop's lock.
    if (pool_.await_idle(function.queue)) function.function = nullptr;
}

void RpcService::close() {
    for (;;) {
        std::shared_ptr<ServedFunction> function;
        {
            const runtime::Progress::Guard guard(node_->progress());
            if (functions_.empty()) break;
            function = functions_.back();
        }
        end(*function);
    }
    pool_.stop();
}

Result<void> RpcService::add(engine::Calls& calls, std::shared_ptr<ServedFunction> function) {
    NEXAR_TRY(calls.add(function->entry));
    functions_.push_back(std::move(function));
    return {};
}

}  // namespace nexar::detail
