#include <fmt/format.h>

#include <limits>
#include <nexar/node.hpp>
#include <nexar/rpc.hpp>

#include "base/printable.hpp"
#include "runtime/node_body.hpp"
#include "runtime/task.hpp"
#include "wire/limits.hpp"

namespace nexar {

namespace {

// Longer than any program runs, but too short to overflow the clock.
constexpr std::chrono::nanoseconds kForEver = std::chrono::hours(24 * 365 * 10);

Rank checked_rank(int rank, const char* operation) {
    if (rank < 0) {
        throw Error(Errc::invalid_argument, fmt::format("there is no member with rank {}", rank),
                    {.operation = operation});
    }
    return Rank(static_cast<std::uint32_t>(rank));
}

}  // namespace

void Served::stop() noexcept {
    if (!function_) return;
    const auto function = std::move(function_);
    if (function->node->progress().forked()) return;
    function->node->rpc().end(*function);
}

Executor inline_executor() {
    return [](const std::function<void()>& function) { function(); };
}

namespace detail {

std::uint16_t checked_number(std::int64_t number) {
    if (number >= 0 && number <= std::numeric_limits<std::uint16_t>::max()) {
        return static_cast<std::uint16_t>(number);
    }
    throw Error(Errc::invalid_argument,
                fmt::format("{} is not a valid function number; allowed: 0 to 65535", number));
}

std::string checked_name(std::string_view name) {
    if (!name.empty() && name.size() <= wire::kMaxFunctionNameBytes && !first_unprintable(name)) {
        return std::string(name);
    }
    throw Error(
        Errc::invalid_argument,
        fmt::format("the name of a function must be printable text of 1 to {} bytes, not \"{}\"",
                    wire::kMaxFunctionNameBytes, printable(name, wire::kMaxFunctionNameBytes)));
}

Error wrong_argument(std::size_t bytes, const Expected& expected) {
    return {Errc::invalid_argument,
            fmt::format("the function takes an argument of {}{} bytes, not of {}; both sides must "
                        "use the same type",
                        expected.single ? "" : "a multiple of ", expected.unit, bytes)};
}

Served serve(const std::shared_ptr<NodeBody>& node, const FunctionName& name, RawFunction function,
             const FunctionOptions& options) {
    auto made = std::make_shared<ServedFunction>();
    made->entry.number = name.number();
    made->entry.name = name.name();
    made->entry.max_request = options.max_request;
    if (options.callers) {
        std::vector<Rank> ranks;
        for (const int rank : *options.callers) {
            ranks.push_back(checked_rank(rank, "serve"));
        }
        made->entry.callers = std::move(ranks);
    }
    made->function = std::move(function);
    made->executor = options.executor;
    return Served(node->serve(std::move(made)));
}

namespace {

TaskOwner start(TaskOwner task, Rank to, const std::optional<NodeId>& node,
                const FunctionName& function, const Argument& argument, const CallOptions& options,
                const Expected& expected) {
    task->what = Task::What::call;
    if (!task->call) task->call = std::make_unique<Task::CallPart>();
    Task::CallPart& part = *task->call;
    engine::CallOperation& call = part.operation;
    call.owner = task.get();
    call.to = to;
    call.node = node;
    call.function = function.number();
    call.name = function.name();
    call.deadline.reset();
    if (options.timeout < kForEver) call.deadline = task->node().now() + options.timeout;
    call.max_response = options.max_response;
    call.unit = expected.unit;
    call.single = expected.single;
    if (argument.bytes.size() <= kCopiedArgument) {
        part.copied.assign(argument.bytes.begin(), argument.bytes.end());
        call.content = part.copied;
    } else {
        part.kept = argument.keep;
        call.content = argument.bytes;
    }
    task->node().progress().post(*task);
    return task;
}

}  // namespace

TaskOwner start_call(const std::shared_ptr<NodeBody>& node, int rank, const FunctionName& function,
                     const Argument& argument, const CallOptions& options,
                     const Expected& expected) {
    const Rank to = checked_rank(rank, "call");
    const NodeId target = node->member(to, "call");
    return start(node->make_task(std::make_shared<CommunicatorBody>(node, node->world())), to,
                 target, function, argument, options, expected);
}

TaskOwner start_call(const std::shared_ptr<CommunicatorBody>& communicator, int rank,
                     const FunctionName& function, const Argument& argument,
                     const CallOptions& options, const Expected& expected) {
    const Rank to = checked_rank(rank, "call");
    const std::size_t size = communicator->context->pairs.size();
    if (to.value() >= size) {
        throw Error(Errc::invalid_argument,
                    fmt::format("there is no rank {} in a communicator of {}", rank, size),
                    {.operation = "call"});
    }
    return start(communicator->node->make_task(communicator), to, std::nullopt, function, argument,
                 options, expected);
}

Payload response(Task& task) {
    return std::move(task.call->operation.response);
}

}  // namespace detail

}  // namespace nexar
