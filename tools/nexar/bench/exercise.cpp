// The exercise that runs a collective of one size.

#include "bench/exercise.hpp"

#include <algorithm>
#include <chrono>
#include <nexar/operators.hpp>

#include "bench/memory.hpp"
#include "bench/reference.hpp"

namespace nexar::bench {

namespace {

using schedule::Collective;

/// True for operations that divide the vector into one chunk per rank.
bool divides(Collective operation) noexcept {
    switch (operation) {
        case Collective::all_gather:
        case Collective::gather:
        case Collective::scatter:
        case Collective::reduce_scatter:
        case Collective::all_to_all:
            return true;
        default:
            return false;
    }
}

/// The number of elements in this rank's input and output, as in schedule::Request.
struct Counts {
    std::uint64_t input = 0;
    std::uint64_t output = 0;
};

Counts counts_of(Collective operation, std::uint64_t all, std::uint64_t own, bool is_root) {
    const std::uint64_t at_root = is_root ? all : 0;
    switch (operation) {
        case Collective::broadcast:
            return {.input = 0, .output = all};
        case Collective::reduce:
            return {.input = all, .output = at_root};
        case Collective::all_gather:
            return {.input = own, .output = all};
        case Collective::gather:
            return {.input = own, .output = at_root};
        case Collective::scatter:
            return {.input = at_root, .output = own};
        case Collective::reduce_scatter:
            return {.input = all, .output = own};
        case Collective::barrier:
            return {};
        default:
            return {.input = all, .output = all};
    }
}

class CollectiveExercise final : public Exercise {
public:
    CollectiveExercise(const Plan& plan, const Communicator& world, const Extent& extent)
        : world_(world),
          root_(static_cast<int>(plan.root)),
          op_(plan.redop),
          reference_{.operation = plan.subject.operation,
                     .redop = plan.redop,
                     .dtype = plan.dtype,
                     .world = static_cast<std::uint32_t>(world.size()),
                     .rank = static_cast<std::uint32_t>(world.rank()),
                     .root = plan.root,
                     .chunk = extent.count / static_cast<std::uint32_t>(world.size())} {
        const Counts counts =
            counts_of(reference_.operation, extent.count, reference_.chunk, world.rank() == root_);
        input_ = Memory(counts.input, plan.dtype, plan.allocator);
        output_ = Memory(counts.output, plan.dtype, plan.allocator);
    }

    void fill() override {
        reference_.fill(input_.buffer());
        const bool has_it = reference_.operation == Collective::broadcast && world_.rank() == root_;
        if (has_it) {
            reference_.fill(output_.buffer());
        } else {
            spoil(output_.buffer());
        }
    }

    double run() override {
        const auto begin = std::chrono::steady_clock::now();
        start().wait();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }

    std::uint64_t wrong() const override {
        // An exclusive scan leaves the output of rank 0 undefined.
        if (reference_.operation == Collective::exclusive_scan && world_.rank() == 0) return 0;
        return reference_.wrong(output_.buffer());
    }

    bool runs_ahead() const noexcept override {
        return schedule::rooted(reference_.operation) || reference_.operation == Collective::scan ||
               reference_.operation == Collective::exclusive_scan;
    }

private:
    Work<> start() const {
        const Buffer in = input_.buffer();
        const Buffer out = output_.buffer();
        switch (reference_.operation) {
            case Collective::all_reduce:
                return world_.all_reduce(in, out, op_);
            case Collective::reduce:
                return world_.reduce(in, out, op_, root_);
            case Collective::broadcast:
                return world_.broadcast(out, root_);
            case Collective::all_gather:
                return world_.all_gather(in, out);
            case Collective::gather:
                return world_.gather(in, out, root_);
            case Collective::scatter:
                return world_.scatter(in, out, root_);
            case Collective::reduce_scatter:
                return world_.reduce_scatter(in, out, op_);
            case Collective::all_to_all:
                return world_.all_to_all(in, out);
            case Collective::scan:
                return world_.scan(in, out, op_);
            case Collective::exclusive_scan:
                return world_.exclusive_scan(in, out, op_);
            case Collective::barrier:
                break;
        }
        return world_.barrier();
    }

    Communicator world_;
    int root_;
    Operator op_;
    Reference reference_;
    Memory input_{};
    Memory output_{};
};

}  // namespace

Extent extent_of(const Plan& plan, std::uint32_t world, std::uint64_t size) {
    if (size == 0) return {};
    const std::size_t element = size_of(plan.dtype);
    const bool is_divided =
        plan.subject.kind == Subject::Kind::collective && divides(plan.subject.operation);
    const std::uint64_t parts = is_divided ? world : 1;
    const std::uint64_t count = std::max<std::uint64_t>(1, size / element / parts) * parts;
    return {.bytes = count * element, .count = count};
}

std::unique_ptr<Exercise> make_exercise(const Plan& plan, const Communicator& world,
                                        const Extent& extent) {
    if (plan.subject.kind != Subject::Kind::collective) {
        return make_message_exercise(plan, world, extent);
    }
    return std::make_unique<CollectiveExercise>(plan, world, extent);
}

std::string algorithm_of(const Plan& plan, std::uint32_t world, const Extent& extent) {
    if (plan.subject.kind != Subject::Kind::collective) return "-";
    const auto element = static_cast<std::uint32_t>(size_of(plan.dtype));
    const auto choice =
        schedule::choose({.operation = plan.subject.operation,
                          .world = world,
                          .count = extent.count,
                          .largest = schedule::Chunks::even(extent.count, world).largest(),
                          .element_bytes = element,
                          .commutative = true},
                         plan.profile);
    return choice ? std::string(choice->algorithm->name) : "-";
}

}  // namespace nexar::bench
