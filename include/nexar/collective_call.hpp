#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/buffer.hpp>
#include <nexar/collective_operation.hpp>
#include <nexar/export.hpp>
#include <nexar/kept.hpp>
#include <nexar/operators.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <span>
#include <vector>

namespace nexar {

/// Options of one call of a collective.
struct CollectiveOptions {
    /// After this time the call fails on all ranks with Errc::timed_out. 0 selects the setting
    /// collective_timeout.
    std::chrono::nanoseconds timeout{};
};

/// How a buffer is divided into chunks of different sizes, one per rank.
struct ChunkLayout {
    /// Number of elements of each chunk.
    std::vector<std::size_t> counts{};
    /// Offset of each chunk in elements; nullopt if the chunks are contiguous.
    std::optional<std::vector<std::size_t>> displacements{};
};

namespace detail {

class CommunicatorBody;

template <Integers C>
ChunkLayout layout_of(const C& counts) {
    return {.counts = sizes_of(counts)};
}
template <Integers C, Integers D>
ChunkLayout layout_of(const C& counts, const D& displacements) {
    return {.counts = sizes_of(counts), .displacements = sizes_of(displacements)};
}

/// The arguments of a collective as the user passed them. Which buffers are used depends on the
/// operation and the rank. The collective runs in place if the input is exactly the part of the
/// output that it would be copied to; any other overlap is an error.
struct CollectiveCall {
    Collective operation = Collective::barrier;
    ConstBuffer input{};
    Buffer output{};
    std::optional<std::vector<Buffer>> buckets{};  // instead of both: one vector in many places
    Operator op{};
    int root = 0;
    /// For a v-variant: the chunks of the longer buffer; for all_to_all those of the input, by
    /// receiver.
    std::optional<ChunkLayout> chunks{};
    ChunkLayout receives{};         // all_to_all: the chunks of the output, by sender
    bool exchanges_counts = false;  // in preparation of a v-variant
    CollectiveOptions options{};
};

/// Throws nexar::Error if the arguments are invalid. `held` owns the buffers if the user does not.
NEXAR_EXPORT TaskOwner start_collective(const std::shared_ptr<CommunicatorBody>& communicator,
                                        const CollectiveCall& call,
                                        std::unique_ptr<Held> held = nullptr);

/// The same for a v-variant whose receivers do not know the sizes: the ranks first exchange their
/// counts, then `room` allocates the output.
NEXAR_EXPORT TaskOwner start_counted(const std::shared_ptr<CommunicatorBody>& communicator,
                                     CollectiveCall call, std::unique_ptr<KeptRoom> room);

/// Writes the identity of a built-in operator to `out`, which is one element: 0 for a sum.
NEXAR_EXPORT void put_identity(const Buffer& out, ReduceOp op);

/// value = initial op value, for one element.
NEXAR_EXPORT void fold_into(const Buffer& value, const ConstBuffer& initial, const Operator& op);

/// During its lifetime, operations that this thread starts are held back; the destructor starts
/// them all together.
class NEXAR_EXPORT Together {
public:
    Together();
    Together(const Together&) = delete;
    Together& operator=(const Together&) = delete;
    ~Together();

private:
    bool outermost_;
};

}  // namespace detail

}  // namespace nexar
