#include "runtime/task.hpp"

#include <fmt/format.h>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "engine/collective_words.hpp"
#include "runtime/node_access.hpp"
#include "runtime/rpc_pool.hpp"

namespace nexar::detail {

NodeBody& Task::node() const noexcept {
    return *communicator->node;
}

void Task::run_under_lock() noexcept {
    // Before this returns, the caller may have the task back and drop the last reference to the
    // node.
    const std::shared_ptr<NodeBody> kept = communicator->node;
    const NodeAccess access(*kept, NodeAccess::LockHeld{});
    start(access.engine());
}

void Task::run_by_poster() noexcept {
    posting = true;
    node().start_by_poster(*this);
    posting = false;
}

Task& sent_task() {
    static Task& sent = *[] {
        auto* const made = new Task;
        made->looked_at = true;
        runtime::Progress::complete_unshared(made->completion);
        return made;
    }();
    return sent;
}

void Task::start(engine::Engine& engine) noexcept {
    engine::Context* const context = communicator->context;
    switch (what) {
        case What::send:
            engine.start(*context, send);
            break;
        case What::receive:
            engine.start(*context, receive);
            break;
        case What::send_and_receive:
            // Start the receive first: a message to this rank itself then goes straight into its
            // buffer.
            engine.start(*context, receive);
            engine.start(*context, send);
            break;
        case What::probe:
            engine.start(*context, probe);
            break;
        case What::message:
            engine.start(*message, receive);
            break;
        case What::call:
            engine.start(*context, call->operation);
            break;
        case What::collective:
            engine.start(*context, *collective);
            break;
        case What::counted_collective:
            engine.start(*context, *counted->exchange, *collective);
            break;
        case What::agreement:
            engine.start(*context, *agreement);
            break;
        case What::failures:
            node().start_failures(*this);
            break;
    }
}

void Task::clear() noexcept {
    communicator.reset();
    message = nullptr;
    parts = 1;
    error.reset();
    completion.rearm();
    follow.follower = nullptr;
    if (call) call->kept.reset();
    held.reset();
    counted.reset();
    looked_at = false;
    if (collective) {
        // It keeps its plan: the next operation often has the same one.
        collective->reducer.reset();
        collective->steps.clear();
    }
}

Status status_of(const engine::Envelope& envelope) noexcept {
    return {.source = static_cast<int>(envelope.source.value()),
            .tag = envelope.tag.value(),
            .bytes = static_cast<std::size_t>(envelope.bytes)};
}

bool Task::ended(engine::Operation& operation, engine::Engine& engine) {
    if (operation.error && !error) error = operation.error;
    if (operation.kind() == engine::Operation::Kind::receive ||
        operation.kind() == engine::Operation::Kind::probe) {
        status = status_of(operation.envelope);
        message = receive.message;
    }
    if (counted && &operation == counted->exchange.get()) begin_counted(engine, operation.error);
    NEXAR_ASSERT(parts > 0);
    return --parts == 0;
}

void Task::begin_counted(engine::Engine& engine, const std::optional<Error>& failure) {
    if (!collective->active) return;  // the engine rejected it
    if (failure) return engine.abandon(*collective, *failure);
    try {
        set_counted();
    } catch (const Error& refused) {
        return engine.abandon(*collective, refused);
    } catch (const std::exception& failed) {
        return engine.abandon(
            *collective,
            Error(Errc::out_of_memory,
                  fmt::format("there is not enough memory for the elements that the other ranks "
                              "send: {}",
                              failed.what())));
    }
    engine.begin(*collective);
}

namespace {

std::string bytes_text(std::span<const port::ConstBytes> content) {
    std::size_t bytes = 0;
    for (const port::ConstBytes piece : content) bytes += piece.size();
    return fmt::format("{} bytes", bytes);
}

std::string pattern_text(const engine::Pattern& pattern) {
    return fmt::format(
        "from {}, {}",
        pattern.source ? fmt::format("rank {}", pattern.source->value()) : std::string("any rank"),
        pattern.tag ? fmt::format("tag {}", pattern.tag->value()) : std::string("any tag"));
}

std::string send_text(const engine::SendOperation& send) {
    return fmt::format("send of {} to rank {}, tag {}", bytes_text(send.content), send.to.value(),
                       send.tag.value());
}

}  // namespace

std::string Task::description() const {
    switch (what) {
        case What::send:
            return send_text(send);
        case What::receive:
        case What::message:
            return fmt::format("receive {}", pattern_text(receive.pattern));
        case What::send_and_receive:
            return fmt::format("{}, and receive {}", send_text(send),
                               pattern_text(receive.pattern));
        case What::probe:
            return fmt::format("probe {}", pattern_text(probe.pattern));
        case What::call:
            return call->operation.name.empty()
                       ? fmt::format("call of function {} at rank {}", call->operation.function,
                                     call->operation.to.value())
                       : fmt::format("call of function {} at rank {}", call->operation.name,
                                     call->operation.to.value());
        case What::agreement:
            return "agreement";
        case What::failures:
            return "wait for failures";
        case What::collective:
        case What::counted_collective:
            break;
    }
    return engine::call_text(collective->terms);
}

namespace {

void drop(NodeBody& node, engine::InMessage& message) noexcept {
    if (node.progress().forked()) return;  // the task belongs to the parent
    const NodeAccess access(node);
    access->drop(message);
}

}  // namespace

void TaskEnd::operator()(Task* task) const noexcept {
    if (task->communicator == nullptr) return;  // sent_task()
    // Keeps the node, which owns the task, alive.
    const std::shared_ptr<CommunicatorBody> communicator = std::move(task->communicator);
    NodeBody& node = *communicator->node;
    if (task->error && !task->looked_at && !node.closing()) {
        NEXAR_LOG_ERROR("an operation failed, and the program did not check its result: {}: {}",
                        task->description(), task->error->what());
    }
    if (task->what == Task::What::receive && task->receive.only_take && task->message != nullptr) {
        drop(node, *task->message);  // the user did not retrieve it from the Work
    }
    node.keep(task);
}

bool done(const Task& task) noexcept {
    return task.completion.done();
}

namespace {

std::optional<TimePoint> point(const Deadline* deadline) {
    if (deadline == nullptr) return std::nullopt;
    return TimePoint(std::chrono::duration_cast<Duration>(deadline->time_since_epoch()));
}

}  // namespace

bool wait(Task& task, const Deadline* deadline) {
    if (task.completion.done()) return true;
    const runtime::RpcPool::Waiting waiting;
    return task.node().progress().wait(task.completion, point(deadline));
}

std::size_t wait_any(std::span<Task* const> tasks, const Deadline* deadline) {
    for (std::size_t i = 0; i < tasks.size(); ++i) {
        if (tasks[i]->completion.done()) return i;
    }
    runtime::Progress& progress = tasks.front()->node().progress();
    std::vector<runtime::Completion*> completions;
    completions.reserve(tasks.size());
    for (Task* task : tasks) {
        if (&task->node().progress() != &progress) {
            throw Error(Errc::invalid_argument,
                        "cannot wait together for works of nodes that do not share a progress loop",
                        {.operation = "wait_any"});
        }
        completions.push_back(&task->completion);
    }
    const runtime::RpcPool::Waiting waiting;
    return progress.wait_any(completions, point(deadline)).value_or(tasks.size());
}

void cancel(Task& task) noexcept {
    if (task.completion.done()) return;
    task.looked_at = true;
    NodeBody& node = task.node();
    if (node.progress().forked()) return;  // the task belongs to the parent
    const NodeAccess access(node);
    engine::Engine& engine = access.engine();
    if (task.send.active) engine.cancel(task.send);
    if (task.receive.active) engine.cancel(task.receive);
    if (task.probe.active) engine.cancel(task.probe);
    if (task.call && task.call->operation.active) engine.cancel(task.call->operation);
    if (task.collective && task.collective->active) engine.cancel(*task.collective);
    if (task.counted && task.counted->exchange->active) engine.cancel(*task.counted->exchange);
    if (task.agreement && task.agreement->active) engine.cancel(*task.agreement);
    if (task.what == Task::What::failures) node.cancel_failures(task);
}

void wait_before_end(TaskOwner& task, bool unwinding) noexcept {
    if (task->node().progress().forked()) {
        // The parent's engine still uses the task, so the child must not destroy it.
        // NOLINTNEXTLINE(bugprone-unused-return-value)
        static_cast<void>(task.release());
        return;
    }
    if (unwinding) cancel(*task);
    wait(*task, nullptr);
}

bool follow(Task& task, Follower& follower) {
    task.follow.follower = &follower;
    return task.completion.then(task.follow);
}

const std::optional<Error>& error(Task& task) noexcept {
    if (!task.looked_at) task.looked_at = true;  // not for sent_task(), which threads share
    return task.error;
}

Held& held(Task& task) noexcept {
    return *task.held;
}

Status status(const Task& task) noexcept {
    return task.status;
}

Result<Message> take_message(Task& task) {
    auto* body = new MessageBody{.communicator = task.communicator,
                                 .message = std::exchange(task.message, nullptr)};
    return Message(Message::Owner(body), task.status);
}

Error wrong_size(const Status& got, std::size_t wanted) {
    return {
        Errc::invalid_argument,
        fmt::format("the message has {} bytes, but the value to receive has {}", got.bytes, wanted),
        {.rank = got.source, .operation = "recv"}};
}

void MessageEnd::operator()(MessageBody* body) const noexcept {
    const std::unique_ptr<MessageBody> owned(body);
    if (owned->message != nullptr) drop(*owned->communicator->node, *owned->message);
}

}  // namespace nexar::detail
