// Translates a user's call into an operation of the engine, with the buffers that this rank uses.

#include "runtime/collective_caller.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "runtime/memory_places.hpp"

namespace nexar::detail {

namespace {

using schedule::Chunks;
using Op = schedule::Collective;

/// The parts of a call that this rank uses, in elements.
class Caller {
public:
    Caller(const CollectiveCall& call, std::uint32_t world, std::uint32_t me,
           engine::CollectiveOperation& into)
        : call_(call), world_(world), me_(me), into_(into) {}

    void take() {
        into_.terms = {.what = call_.operation,
                       .has_counts = call_.chunks.has_value(),
                       .exchanges_counts = call_.exchanges_counts};
        into_.in_place = false;
        into_.input.clear();
        into_.output.clear();
        into_.receives = {};
        if (schedule::rooted(call_.operation)) take_root();
        if (call_.chunks) check_layout(*call_.chunks);
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
                take_type(call_.output);
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

    /// Checks everything that does not depend on the counts of other ranks.
    void check_input() {
        if (schedule::rooted(call_.operation)) take_root();
        if (call_.chunks) check_layout(*call_.chunks);
        take_type(call_.input);
        static_cast<void>(input_memory());
        const bool sends_all = call_.operation == Op::all_to_all || is_root();
        if (!call_.chunks || !sends_all) return;
        want("input", call_.input.count, chunks_of(call_.chunks->counts).total());
    }

private:
    bool is_root() const noexcept { return me_ == into_.terms.root; }
    std::string_view title() const noexcept { return schedule::name(call_.operation); }

    [[noreturn]] void refuse(std::string cause, Errc code = Errc::invalid_argument) const {
        throw Error(code, std::move(cause), {.operation = std::string(title())});
    }

    [[noreturn]] void refuse_overlap() const {
        refuse(
            "the input and the output overlap, but not as an in-place call requires; use "
            "separate buffers or the same one for both");
    }

    void take_root() {
        if (call_.root < 0 || static_cast<std::uint32_t>(call_.root) >= world_) {
            refuse(fmt::format("root {} is not a rank of this communicator of {}", call_.root,
                               world_));
        }
        into_.terms.root = static_cast<std::uint32_t>(call_.root);
    }

    void check_layout(const ChunkLayout& layout) const {
        const bool used = !schedule::rooted(call_.operation) || is_root();
        if (!used) return;
        if (layout.counts.size() != world_) {
            refuse(fmt::format("there are {} counts for {} ranks", layout.counts.size(), world_));
        }
        if (layout.displacements && layout.displacements->size() != world_) {
            refuse(fmt::format("there are {} displacements for {} ranks",
                               layout.displacements->size(), world_));
        }
        std::size_t sum = 0;
        for (const std::size_t count : layout.counts) {
            if (count > kMostElements - sum) refuse("the sum of the counts overflows");
            sum += count;
        }
    }

    static Chunks chunks_of(const std::vector<std::size_t>& counts) {
        return Chunks::of(std::vector<std::uint64_t>(counts.begin(), counts.end()));
    }

    /// If only the root knows all counts, other ranks know their own.
    Chunks own_chunk(std::size_t own) const {
        std::vector<std::uint64_t> counts(world_);
        counts[me_] = own;
        return Chunks::of(counts);
    }

    /// Sets the element type of the call from one buffer; all others must have the same.
    template <class AnyBuffer>
    void take_type(const AnyBuffer& buffer) {
        const std::size_t size = buffer.element_size();
        if (size == 0 || size > std::numeric_limits<std::uint32_t>::max()) {
            refuse(
                fmt::format("elements of type {} cannot have {} bytes", name(buffer.dtype), size));
        }
        into_.terms.dtype = buffer.dtype;
        into_.terms.element_bytes = static_cast<std::uint32_t>(size);
    }

    template <class AnyBuffer>
    port::Bytes memory(const AnyBuffer& buffer, const char* which) const {
        const std::size_t size = buffer.element_size();
        if (buffer.dtype != into_.terms.dtype || size != into_.terms.element_bytes) {
            refuse(fmt::format("the {} has elements of {}, but the call has elements of {}", which,
                               type_text(buffer.dtype, size),
                               type_text(into_.terms.dtype, into_.terms.element_bytes)));
        }
        if (buffer.count > std::numeric_limits<std::int64_t>::max() / size) {
            refuse(fmt::format("{} elements of {} bytes exceed the address space", buffer.count,
                               size));
        }
        if (buffer.data == nullptr && buffer.count != 0) {
            refuse(fmt::format("the {} has {} elements but a null pointer", which, buffer.count));
        }
        // The engine has one type for all memory; it never writes to the input.
        // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast)
        return {static_cast<std::byte*>(const_cast<void*>(static_cast<const void*>(buffer.data))),
                buffer.bytes()};
    }
    static std::string type_text(DType dtype, std::size_t size) {
        return dtype == DType::opaque ? fmt::format("{} opaque bytes", size)
                                      : fmt::format("type {}", name(dtype));
    }

    port::Bytes input_memory() const { return memory(call_.input, "input"); }
    port::Bytes output_memory() const { return memory(call_.output, "output"); }

    /// The memory of each chunk of a buffer.
    std::vector<port::Bytes> places(port::Bytes buffer, const std::vector<std::size_t>& counts,
                                    const std::vector<std::size_t>& begins,
                                    const char* which) const {
        const std::size_t size = into_.terms.element_bytes;
        const std::size_t room = buffer.size() / size;
        std::vector<port::Bytes> chunks;
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const std::size_t begin = begins[i];
            const std::size_t count = counts[i];
            if (begin > room || count > room - begin) {
                refuse(
                    fmt::format("the chunk of rank {} has {} elements at offset {}, but the {} has "
                                "only {}",
                                i, count, begin, which, room));
            }
            chunks.push_back(buffer.subspan(begin * size, count * size));
        }
        return chunks;
    }

    void want(const char* which, std::size_t has, std::uint64_t wanted) const {
        if (has == wanted) return;
        refuse(fmt::format("the {} has {} elements but must have {}", which, has, wanted));
    }

    void output(std::uint64_t wanted) {
        want("output", call_.output.count, wanted);
        into_.output.push_back(output_memory());
    }

    /// Sets input and output, or only one of them if the call is in place: the shorter buffer is
    /// then exactly the part of the longer one that begins at element `offset`.
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
        if (inner.data() != outer.data() + offset * into_.terms.element_bytes) {
            refuse_overlap();
        }
        into_.in_place = true;
        into_.output.push_back(outer);
    }

    void take_vectors() {
        if (call_.buckets) return take_buckets(*call_.buckets);
        const std::size_t count = call_.input.count;
        take_type(call_.input);
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
            if (places.empty()) take_type(bucket);
            places.push_back(memory(bucket, "bucket"));
            into_.terms.count += bucket.count;
        }
        into_.output = places;
        into_.in_place = into_.terms.count != 0;
        into_.chunks = Chunks::even(into_.terms.count, world_);
        if (overlap_in(places)) refuse("two buckets overlap");
    }

    void take_gathered() {
        const std::size_t own = call_.input.count;
        into_.terms.count = own;
        take_type(call_.input);
        const bool gets_all = call_.operation == Op::all_gather || is_root();
        into_.chunks = !call_.chunks ? Chunks::even(std::uint64_t{own} * world_, world_)
                       : gets_all    ? chunks_of(call_.chunks->counts)
                                     : own_chunk(own);
        if (!gets_all) {
            into_.input.push_back(input_memory());
            return;
        }
        want("input", own, into_.chunks.count(me_));
        if (call_.chunks && call_.operation == Op::all_gather) {
            into_.terms.count = into_.chunks.total();
        }
        if (call_.chunks && call_.chunks->displacements) {
            return gather_apart(call_.chunks->counts, *call_.chunks->displacements);
        }
        want("output", call_.output.count, into_.chunks.total());
        pair(input_memory(), output_memory(), true, into_.chunks.offset(me_));
    }

    /// For an output with gaps between its chunks.
    void gather_apart(const std::vector<std::size_t>& counts,
                      const std::vector<std::size_t>& begins) {
        into_.output = places(output_memory(), counts, begins, "output");
        if (overlap_in(into_.output)) refuse("two chunks of the output overlap");
        const port::Bytes in = input_memory();
        into_.in_place = !in.empty() && in.data() == into_.output[me_].data();
        if (into_.in_place) return;
        if (meets(into_.output, in)) refuse_overlap();
        into_.input.push_back(in);
    }

    void take_scattered() {
        const std::size_t own = call_.output.count;
        into_.terms.count = own;
        take_type(call_.output);
        const bool has_all = call_.operation == Op::reduce_scatter || is_root();
        into_.chunks = !call_.chunks ? Chunks::even(std::uint64_t{own} * world_, world_)
                       : has_all     ? chunks_of(call_.chunks->counts)
                                     : own_chunk(own);
        if (!has_all) return output(own);
        want("output", own, into_.chunks.count(me_));
        if (call_.chunks && call_.operation == Op::reduce_scatter) {
            into_.terms.count = into_.chunks.total();
        }
        if (call_.chunks && call_.chunks->displacements) {
            return scatter_apart(call_.chunks->counts, *call_.chunks->displacements);
        }
        want("input", call_.input.count, into_.chunks.total());
        pair(input_memory(), output_memory(), false, into_.chunks.offset(me_));
    }

    /// For an input with gaps between its chunks.
    void scatter_apart(const std::vector<std::size_t>& counts,
                       const std::vector<std::size_t>& begins) {
        std::vector<port::Bytes> chunks = places(input_memory(), counts, begins, "input");
        const port::Bytes out = output_memory();
        into_.in_place = !out.empty() && out.data() == chunks[me_].data();
        if (into_.in_place) {
            // One list serves as input and output: the chunk of this rank stays in place.
            if (overlap_in(chunks)) refuse("two chunks of the input overlap");
            into_.output = std::move(chunks);
            return;
        }
        if (meets(chunks, out)) refuse_overlap();
        into_.input = std::move(chunks);
        into_.output.push_back(out);
    }

    void take_exchanged() {
        take_type(call_.input);
        if (call_.chunks) {
            check_layout(call_.receives);
            into_.chunks = chunks_of(call_.chunks->counts);
            into_.receives = chunks_of(call_.receives.counts);
            if (call_.chunks->displacements) {
                return exchange_apart(call_.chunks->counts, *call_.chunks->displacements);
            }
        } else {
            if (call_.input.count % world_ != 0) {
                refuse(fmt::format("{} elements cannot be divided evenly among {} ranks",
                                   call_.input.count, world_));
            }
            into_.terms.count = call_.input.count / world_;
            into_.chunks = into_.receives = Chunks::even(call_.input.count, world_);
        }
        want("input", call_.input.count, into_.chunks.total());
        want("output", call_.output.count, into_.receives.total());
        pair(input_memory(), output_memory(), true, 0);
        if (into_.in_place && call_.chunks && call_.chunks->counts != call_.receives.counts) {
            refuse("in place, the counts sent to and received from a rank must be equal");
        }
    }

    void exchange_apart(const std::vector<std::size_t>& counts,
                        const std::vector<std::size_t>& begins) {
        const ChunkLayout& receives = call_.receives;
        if (!receives.displacements) refuse("only one of input and output has displacements");
        std::vector<port::Bytes> sent = places(input_memory(), counts, begins, "input");
        into_.output = places(output_memory(), receives.counts, *receives.displacements, "output");
        if (overlap_in(into_.output)) refuse("two chunks of the output overlap");
        const auto same = [](port::Bytes a, port::Bytes b) {
            return a.data() == b.data() && a.size() == b.size();
        };
        into_.in_place = into_.chunks.total() != 0 && std::ranges::equal(sent, into_.output, same);
        if (into_.in_place) return;
        if (any_meets(sent, into_.output)) refuse_overlap();
        into_.input = std::move(sent);
    }

    void take_operator() {
        const Operator& op = call_.op;
        if (!op.folds(into_.terms.dtype, into_.terms.element_bytes)) {
            refuse("the operator was created for elements of another type");
        }
        if (op.fold() != nullptr) {
            into_.reducer.emplace(into_.terms.dtype, into_.terms.element_bytes, op.fold(),
                                  op.commutes());
            into_.terms.operator_name = op.commutes() ? "custom (commutes)" : "custom";
            return;
        }
        const bool scans = call_.operation == Op::scan || call_.operation == Op::exclusive_scan;
        if (scans && op.builtin() == ReduceOp::average) {
            refuse("a scan cannot compute an average; use sum and divide by rank + 1",
                   Errc::unsupported);
        }
        auto reducer = compute::reducer_for(into_.terms.dtype, op.builtin());
        if (!reducer) throw reducer.error().within({.operation = std::string(title())});
        into_.reducer = *std::move(reducer);
        into_.terms.operator_name = name(op.builtin());
    }

    const CollectiveCall& call_;
    std::uint32_t world_;
    std::uint32_t me_;
    engine::CollectiveOperation& into_;
};

}  // namespace

void understand(const CollectiveCall& call, std::uint32_t world, std::uint32_t me,
                engine::CollectiveOperation& into) {
    Caller(call, world, me, into).take();
}

void check_counted(const CollectiveCall& call, std::uint32_t world, std::uint32_t me) {
    engine::CollectiveOperation unused;
    Caller(call, world, me, unused).check_input();
}

}  // namespace nexar::detail
