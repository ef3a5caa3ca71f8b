// Starts collectives.

#include <nexar/collective_call.hpp>
#include <utility>

#include "runtime/collective_caller.hpp"
#include "runtime/node_access.hpp"
#include "runtime/task.hpp"

namespace nexar::detail {

namespace {

thread_local std::vector<Task*>* held_back = nullptr;

engine::CollectiveOperation& operation_of(Task& task,
                                          std::unique_ptr<engine::CollectiveOperation>& operation) {
    if (!operation) {
        operation = std::make_unique<engine::CollectiveOperation>();
        operation->owner = &task;
    }
    return *operation;
}

/// Prepares one of the task's operations.
void set(Task& task, std::unique_ptr<engine::CollectiveOperation>& operation,
         const CollectiveCall& call) {
    const engine::Context& context = *task.communicator->context;
    engine::CollectiveOperation& into = operation_of(task, operation);
    understand(call, static_cast<std::uint32_t>(context.pairs.size()), context.me.value(), into);
}

/// A timeout that the user chose counts from the call, however busy the progress thread is. The
/// default is so long that reading the clock is not worth its time.
void set_timeout(NodeBody& node, const CollectiveOptions& options,
                 engine::CollectiveOperation& operation) {
    const bool chosen = options.timeout.count() > 0;
    operation.timeout =
        chosen ? std::chrono::ceil<Duration>(options.timeout) : node.collective_timeout();
    operation.timeout_began = chosen ? std::optional(node.now()) : std::nullopt;
}

void post(Task& task) {
    if (held_back != nullptr) {
        held_back->push_back(&task);
    } else {
        task.node().progress().post(task);
    }
}

/// The exchange of counts that precedes a v-variant.
CollectiveCall exchange_of(const CollectiveCall& call, Task::CountedPart& part, std::size_t world,
                           bool is_root) {
    CollectiveCall exchange{
        .operation = call.operation, .root = call.root, .exchanges_counts = true};
    part.own = call.chunks ? call.chunks->counts : std::vector<std::size_t>{call.input.count};
    const bool one =
        call.operation == Collective::scatter || (call.operation == Collective::gather && !is_root);
    part.others.assign(one ? 1 : world, 0);
    exchange.input = const_buffer(part.own);
    exchange.output = buffer(part.others);
    return exchange;
}

}  // namespace

TaskOwner start_collective(const std::shared_ptr<CommunicatorBody>& communicator,
                           const CollectiveCall& call, std::unique_ptr<Held> held) {
    NodeBody& node = *communicator->node;
    TaskOwner task = node.make_task(communicator);
    task->what = Task::What::collective;
    task->held = std::move(held);
    set(*task, task->collective, call);
    set_timeout(node, call.options, *task->collective);
    post(*task);
    return task;
}

TaskOwner start_counted(const std::shared_ptr<CommunicatorBody>& communicator, CollectiveCall call,
                        std::unique_ptr<KeptRoom> room) {
    NodeBody& node = *communicator->node;
    const engine::Context& context = *communicator->context;
    const auto world = static_cast<std::uint32_t>(context.pairs.size());
    check_counted(call, world, context.me.value());
    TaskOwner task = node.make_task(communicator);
    task->what = Task::What::counted_collective;
    task->parts = 2;
    task->counted = std::make_unique<Task::CountedPart>();
    Task::CountedPart& part = *task->counted;
    part.room = room.get();
    task->held = std::move(room);
    const bool is_root = call.root == static_cast<int>(context.me.value());
    set(*task, part.exchange, exchange_of(call, part, world, is_root));
    part.call = std::move(call);
    set_timeout(node, part.call.options, *part.exchange);
    engine::CollectiveOperation& operation = operation_of(*task, task->collective);
    operation.timeout = part.exchange->timeout;
    operation.timeout_began = part.exchange->timeout_began;
    operation.terms = {.what = part.call.operation,
                       .dtype = part.call.input.dtype,
                       .element_bytes = static_cast<std::uint32_t>(part.call.input.element_size()),
                       .has_counts = true};
    post(*task);
    return task;
}

void Task::set_counted() {
    CountedPart& part = *counted;
    std::size_t sum = 0;
    for (const std::size_t count : part.others) {
        if (count > kMostElements - sum) {
            throw Error(Errc::invalid_argument, "the sum of the counts overflows");
        }
        sum += count;
    }
    CollectiveCall& wanted = part.call;
    const bool is_root = wanted.root == static_cast<int>(communicator->context->me.value());
    switch (wanted.operation) {
        case Collective::gather:
            if (is_root) {
                wanted.output = part.room->make_room(part.others);
                wanted.chunks = ChunkLayout{.counts = std::move(part.others)};
            } else {
                wanted.chunks.emplace();
            }
            break;
        case Collective::scatter:
            wanted.output = part.room->make_room(part.others);
            break;
        case Collective::all_to_all:
            wanted.output = part.room->make_room(part.others);
            wanted.receives = {.counts = std::move(part.others)};
            break;
        default:
            wanted.output = part.room->make_room(part.others);
            wanted.chunks = ChunkLayout{.counts = std::move(part.others)};
    }
    set(*this, collective, wanted);
}

void put_identity(const Buffer& out, ReduceOp op) {
    compute::put_identity(out.dtype, op, static_cast<std::byte*>(out.data)).value();
}

void fold_into(const Buffer& value, const ConstBuffer& initial, const Operator& op) {
    auto* const out = static_cast<std::byte*>(value.data);
    const auto* const first = static_cast<const std::byte*>(initial.data);
    if (op.fold() != nullptr) return op.fold()->fold(out, first, out, 1);
    compute::reducer_for(value.dtype, op.builtin()).value().fold(out, first, out, 1);
}

Together::Together() : outermost_(held_back == nullptr) {
    if (outermost_) held_back = new std::vector<Task*>;
}

Together::~Together() {
    if (!outermost_) return;
    const std::unique_ptr<std::vector<Task*>> tasks(std::exchange(held_back, nullptr));
    while (!tasks->empty()) {
        // Start the tasks of one loop together, under one lock.
        NodeBody& node = tasks->front()->node();
        const std::shared_ptr<NodeBody> kept = node.shared_from_this();
        std::vector<Task*> others;
        {
            const NodeAccess access(node);
            for (Task* const task : *tasks) {
                if (&task->node() == &node) {
                    task->start(access.engine());
                } else {
                    others.push_back(task);
                }
            }
        }
        tasks->swap(others);
    }
}

}  // namespace nexar::detail
