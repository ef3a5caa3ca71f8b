// From what a user calls to an operation of the engine.

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nexar/collective_call.hpp>
#include <numeric>
#include <utility>

#include "runtime/node_body.hpp"
#include "runtime/task.hpp"

namespace nexar::detail {

namespace {

using schedule::Chunks;
using Op = schedule::Operation;

thread_local std::vector<Task*>* held_back = nullptr;

/// What is looked at of a call on this rank, in elements.
class Caller {
public:
    Caller(const CollectiveCall& call, std::uint32_t world, std::uint32_t me,
           engine::CollectiveOperation& into)
        : call_(call), world_(world), me_(me), into_(into) {}

    void take() {
        into_.terms = {.what = call_.operation,
                       .dtype = call_.output.dtype,
                       .has_counts = call_.counts.has_value()};
        into_.in_place = false;
        into_.input.clear();
        into_.output.clear();
        into_.receives = {};
        if (schedule::rooted(call_.operation)) take_root();
        if (call_.counts) check_counts(*call_.counts);
        switch (call_.operation) {
            case Op::barrier:
                into_.chunks = Chunks::even(0, world_);
                return;
            case Op::all_reduce:
            case Op::reduce:
            case Op::scan:
            case Op::exclusive_scan:
                take_vectors();
                break;
            case Op::broadcast:
                into_.terms.count = call_.output.count;
                into_.chunks = Chunks::even(call_.output.count, world_);
                output(call_.output.count);
                break;
            case Op::all_gather:
            case Op::gather:
                take_gathered();
                break;
            case Op::scatter:
            case Op::reduce_scatter:
                take_scattered();
                break;
            case Op::all_to_all:
                take_exchanged();
                break;
        }
        if (schedule::reduces(call_.operation)) take_operator();
    }

private:
    bool is_root() const noexcept { return me_ == into_.terms.root; }
    std::string_view title() const noexcept { return schedule::name(call_.operation); }

    [[noreturn]] void refuse(std::string cause, Errc code = Errc::invalid_argument) const {
        throw Error(code, std::move(cause), {.operation = std::string(title())});
    }

    void take_root() {
        if (call_.root < 0 || static_cast<std::uint32_t>(call_.root) >= world_) {
            refuse(fmt::format("there is no rank {} in a communicator of {} that could be root",
                               call_.root, world_));
        }
        into_.terms.root = static_cast<std::uint32_t>(call_.root);
    }

    void check_counts(const std::vector<std::size_t>& counts) const {
        const bool looked_at = !schedule::rooted(call_.operation) || is_root();
        if (looked_at && counts.size() != world_) {
            refuse(fmt::format("{} counts were given for {} ranks", counts.size(), world_));
        }
        std::size_t sum = 0;
        for (const std::size_t count : counts) {
            if (count > std::numeric_limits<std::size_t>::max() / 32 - sum) {
                refuse("the counts add up to more than there can be");
            }
            sum += count;
        }
    }

    static Chunks chunks_of(const std::vector<std::size_t>& counts) {
        return Chunks::of(std::vector<std::uint64_t>(counts.begin(), counts.end()));
    }

    /// Where the root alone knows all counts, another rank knows its own.
    Chunks own_chunk(std::size_t own) const {
        std::vector<std::uint64_t> counts(world_);
        counts[me_] = own;
        return Chunks::of(counts);
    }

    std::byte* memory(const void* data, std::size_t count, DType dtype, const char* which) const {
        if (dtype != into_.terms.dtype || size_of(dtype) == 0) {
            refuse(fmt::format("{} of type {} do not fit elements of type {}", which, name(dtype),
                               name(into_.terms.dtype)));
        }
        if (count > std::numeric_limits<std::int64_t>::max() / size_of(dtype)) {
            refuse(fmt::format("{} elements of type {} are no {}", count, name(dtype), which));
        }
        if (data == nullptr && count != 0) {
            refuse(fmt::format("an {} of {} elements has no memory", which, count));
        }
        // The engine reads all memory in one way; it never writes the input.
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
        return static_cast<std::byte*>(const_cast<void*>(data));
    }

    port::Bytes input_memory() const {
        const ConstBuffer& in = call_.input;
        return {memory(in.data, in.count, in.dtype, "input"), in.bytes()};
    }
    port::Bytes output_memory() const {
        const Buffer& out = call_.output;
        return {memory(out.data, out.count, out.dtype, "output"), out.bytes()};
    }

    void want(const char* which, std::size_t has, std::uint64_t wanted) const {
        if (has == wanted) return;
        refuse(fmt::format("the {} has {} elements and must have {}", which, has, wanted));
    }

    void output(std::uint64_t wanted) {
        want("output", call_.output.count, wanted);
        into_.output.push_back(output_memory());
    }

    /// Input and output, or one of them in place of both: when `inner` is exactly its part of
    /// `outer`, which is where the element `offset` stands.
    void pair(port::Bytes in, port::Bytes out, bool input_is_inner, std::uint64_t offset) {
        const port::Bytes outer = input_is_inner ? out : in;
        const port::Bytes inner = input_is_inner ? in : out;
        const bool apart = inner.empty() || outer.empty() ||
                           inner.data() + inner.size() <= outer.data() ||
                           outer.data() + outer.size() <= inner.data();
        if (apart) {
            into_.input.push_back(in);
            into_.output.push_back(out);
            return;
        }
        if (inner.data() != outer.data() + offset * size_of(into_.terms.dtype)) {
            refuse(
                "input and output overlap, but not exactly where the result replaces the "
                "input; use buffers that are apart or the same");
        }
        into_.in_place = true;
        into_.output.push_back(outer);
    }

    void take_vectors() {
        if (call_.buckets) return take_buckets(*call_.buckets);
        const std::size_t count = call_.input.count;
        into_.terms.dtype = call_.input.dtype;
        into_.terms.count = count;
        into_.chunks = Chunks::even(count, world_);
        if (call_.operation == Op::reduce && !is_root()) {
            into_.input.push_back(input_memory());
            return;
        }
        want("output", call_.output.count, count);
        pair(input_memory(), output_memory(), true, 0);
    }

    void take_buckets(const std::vector<Buffer>& buckets) {
        std::vector<port::Bytes> places;
        for (const Buffer& bucket : buckets) {
            if (places.empty()) into_.terms.dtype = bucket.dtype;
            places.emplace_back(memory(bucket.data, bucket.count, bucket.dtype, "bucket"),
                                bucket.bytes());
            into_.terms.count += bucket.count;
        }
        into_.output = places;
        into_.in_place = into_.terms.count != 0;
        into_.chunks = Chunks::even(into_.terms.count, world_);
        std::erase_if(places, [](port::Bytes place) { return place.empty(); });
        std::ranges::sort(places, {}, [](port::Bytes place) { return place.data(); });
        const auto overlap = std::ranges::adjacent_find(
            places, [](port::Bytes a, port::Bytes b) { return a.data() + a.size() > b.data(); });
        if (overlap != places.end()) refuse("two buckets overlap");
    }

    void take_gathered() {
        const std::size_t own = call_.input.count;
        into_.terms.count = own;
        into_.terms.dtype = call_.input.dtype;
        const bool gets_all = call_.operation == Op::all_gather || is_root();
        into_.chunks = !call_.counts ? Chunks::even(std::uint64_t{own} * world_, world_)
                       : gets_all    ? chunks_of(*call_.counts)
                                     : own_chunk(own);
        if (!gets_all) {
            into_.input.push_back(input_memory());
            return;
        }
        want("input", own, into_.chunks.count(me_));
        want("output", call_.output.count, into_.chunks.total());
        if (call_.counts && call_.operation == Op::all_gather) {
            into_.terms.count = into_.chunks.total();
        }
        pair(input_memory(), output_memory(), true, into_.chunks.offset(me_));
    }

    void take_scattered() {
        const std::size_t own = call_.output.count;
        into_.terms.count = own;
        into_.terms.dtype = call_.output.dtype;
        const bool has_all = call_.operation == Op::reduce_scatter || is_root();
        into_.chunks = !call_.counts ? Chunks::even(std::uint64_t{own} * world_, world_)
                       : has_all     ? chunks_of(*call_.counts)
                                     : own_chunk(own);
        if (!has_all) return output(own);
        want("output", own, into_.chunks.count(me_));
        want("input", call_.input.count, into_.chunks.total());
        if (call_.counts && call_.operation == Op::reduce_scatter) {
            into_.terms.count = into_.chunks.total();
        }
        pair(input_memory(), output_memory(), false, into_.chunks.offset(me_));
    }

    void take_exchanged() {
        into_.terms.dtype = call_.input.dtype;
        if (call_.counts) {
            check_counts(call_.receive_counts);
            into_.chunks = chunks_of(*call_.counts);
            into_.receives = chunks_of(call_.receive_counts);
        } else {
            if (call_.input.count % world_ != 0) {
                refuse(fmt::format("{} elements do not divide by {} ranks", call_.input.count,
                                   world_));
            }
            into_.terms.count = call_.input.count / world_;
            into_.chunks = into_.receives = Chunks::even(call_.input.count, world_);
        }
        want("input", call_.input.count, into_.chunks.total());
        want("output", call_.output.count, into_.receives.total());
        pair(input_memory(), output_memory(), true, 0);
        if (into_.in_place && call_.counts && *call_.counts != call_.receive_counts) {
            refuse("in place, what is sent to a rank must be as much as what comes from it");
        }
    }

    void take_operator() {
        const AnyOperator& op = call_.op;
        if (op.user) {
            into_.reducer.emplace(into_.terms.dtype, op.user, op.commutes);
            into_.terms.operator_name = op.commutes ? "custom (commutes)" : "custom";
            return;
        }
        const bool scans = call_.operation == Op::scan || call_.operation == Op::exclusive_scan;
        if (scans && op.op == ReduceOp::avg) {
            refuse("the average of a prefix is not defined; take sum, and divide by rank + 1",
                   Errc::unsupported);
        }
        auto reducer = compute::reducer_for(into_.terms.dtype, op.op);
        if (!reducer) throw reducer.error().within({.operation = std::string(title())});
        into_.reducer = *std::move(reducer);
        into_.terms.operator_name = name(op.op);
    }

    const CollectiveCall& call_;
    std::uint32_t world_;
    std::uint32_t me_;
    engine::CollectiveOperation& into_;
};

}  // namespace

TaskOwner start_collective(const std::shared_ptr<CommunicatorBody>& communicator,
                           const CollectiveCall& call) {
    NodeBody& node = *communicator->node;
    const engine::Context& context = *communicator->context;
    TaskOwner task = node.make_task(communicator);
    task->what = Task::What::collective;
    if (!task->collective) {
        task->collective = std::make_unique<engine::CollectiveOperation>();
        task->collective->owner = task.get();
    }
    engine::CollectiveOperation& operation = *task->collective;
    Caller(call, static_cast<std::uint32_t>(context.pairs.size()), context.me.value(), operation)
        .take();
    operation.timeout = call.options.timeout.count() > 0
                            ? std::chrono::ceil<Duration>(call.options.timeout)
                            : node.collective_timeout();
    if (held_back != nullptr) {
        held_back->push_back(task.get());
    } else {
        node.progress().post(*task);
    }
    return task;
}

Together::Together() : outermost_(held_back == nullptr) {
    if (outermost_) held_back = new std::vector<Task*>;
}

Together::~Together() {
    if (!outermost_) return;
    const std::unique_ptr<std::vector<Task*>> tasks(std::exchange(held_back, nullptr));
    while (!tasks->empty()) {
        // Those of one loop together, under one lock.
        NodeBody& node = tasks->front()->node();
        const std::shared_ptr<NodeBody> kept = node.shared_from_this();
        std::vector<Task*> others;
        {
            const runtime::Progress::Guard guard(node.progress());
            for (Task* const task : *tasks) {
                if (&task->node() == &node) {
                    task->start_under_lock();
                } else {
                    others.push_back(task);
                }
            }
            node.settle(node.now());
        }
        tasks->swap(others);
    }
}

}  // namespace nexar::detail

namespace nexar {

std::vector<std::size_t> Collectives::counts_of_all(std::size_t own, int root) const {
    const engine::Context& context = *body_->context;
    const bool gets = root == kNobody || static_cast<std::uint32_t>(root) == context.me.value();
    std::vector<std::size_t> counts(gets ? context.pairs.size() : 0);
    const std::span<const std::size_t> mine(&own, 1);
    if (root == kNobody) {
        all_gather(mine, std::span(counts)).wait();
    } else {
        gather(mine, std::span(counts), root).wait();
    }
    return counts;
}

std::size_t Collectives::count_from(std::span<const std::size_t> counts, int root) const {
    std::size_t own = 0;
    scatter(counts, std::span(&own, 1), root).wait();
    return own;
}

std::vector<std::size_t> Collectives::counts_to_all(std::span<const std::size_t> counts) const {
    std::vector<std::size_t> received(body_->context->pairs.size());
    all_to_all(counts, std::span(received)).wait();
    return received;
}

}  // namespace nexar
