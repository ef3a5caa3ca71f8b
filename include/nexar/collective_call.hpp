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

/// How one collective is run.
struct CollectiveOptions {
    /// How long it may take until all ranks give it up with Errc::timed_out; 0 is the setting
    /// collective_timeout.
    std::chrono::nanoseconds timeout{};
};

/// How a buffer divides into chunks of different sizes, one for each rank.
struct ChunkLayout {
    /// Elements of each chunk.
    std::vector<std::size_t> counts{};
    /// Where each chunk begins, in elements; nullopt: one after the other.
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

/// A call of a collective, as the user made it. Which buffers are looked at depends on operation
/// and rank. Where the input is exactly the part of the output in which it would stand, the
/// collective runs in place; any other overlap is refused.
struct CollectiveCall {
    Collective operation = Collective::barrier;
    ConstBuffer input{};
    Buffer output{};
    std::optional<std::vector<Buffer>> buckets{};  // in place of both: one vector, many places
    Operator op{};
    int root = 0;
    /// Of a v-variant: the chunks of the longer buffer; of all_to_all those of the input, by
    /// receiver.
    std::optional<ChunkLayout> chunks{};
    ChunkLayout receives{};         // all_to_all: the chunks of the output, by sender
    bool exchanges_counts = false;  // for a v-variant that follows
    CollectiveOptions options{};
};

/// Throws nexar::Error for a call that makes no sense. `held` is where its buffers are, if they are
/// not the user's.
NEXAR_EXPORT TaskOwner start_collective(const std::shared_ptr<CommunicatorBody>& communicator,
                                        const CollectiveCall& call,
                                        std::unique_ptr<Held> held = nullptr);

/// The same for a v-variant whose receivers do not know how much they get: first the ranks exchange
/// their counts, then `room` is made for the output.
NEXAR_EXPORT TaskOwner start_counted(const std::shared_ptr<CommunicatorBody>& communicator,
                                     CollectiveCall call, std::unique_ptr<KeptRoom> room);

/// What an operator of nexar leaves any element unchanged with: 0 for sums. `out` is one element.
NEXAR_EXPORT void put_identity(const Buffer& out, ReduceOp op);

/// value = initial op value, for one element.
NEXAR_EXPORT void fold_into(const Buffer& value, const ConstBuffer& initial, const Operator& op);

/// While one lives, what this thread starts is held back, and then started at once.
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
