#pragma once

#include <cstdint>
#include <functional>

#include "schedule/builder.hpp"
#include "schedule/chunks.hpp"
#include "schedule/request.hpp"

namespace nexar::schedule {

/// A rank's neighbours: position p sends to position p + 1, the last position to position 0. Peers
/// are positions, counted from `first`; if they are not ranks, Builder::among() has their order.
struct Ring {
    const Chunks& chunks;
    std::uint32_t position = 0;
    std::uint32_t first = 0;  // the peer at position 0
    RankOrder owners{};       // whose chunk each position has; by default that of the same number

    std::uint32_t world() const noexcept { return chunks.world(); }
    std::uint32_t before() const noexcept;  // peers
    std::uint32_t after() const noexcept;
    /// The chunk of a position, in a buffer that holds all chunks.
    Slice chunk_of(std::uint32_t at, const Slice& whole) const;
};

/// The ring of all ranks in the order of the request, in which every position has the chunk of its
/// rank.
Ring ring_of(const Request& request);

/// Returns true if a position has the chunk of another one before the all-gather starts.
using Holds = std::function<bool(std::uint32_t position, std::uint32_t other)>;

/// All-gather around a ring: every position contributes `own`, its chunk, and gets all of `whole`.
/// Does not copy `own` into `whole`. Skips chunks that the receiver already holds.
///
///     world 4, chunk sent in step 0, 1, 2     0 -0-> 1 -1-> 2 -2-> 3 -3-> 0
///                                             0 -3-> 1 -0-> 2 -1-> 3 -2-> 0
///                                             0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
///
/// Steps: world - 1. Each rank sends every chunk except that of the position after it.
void ring_all_gather(Builder& builder, const Ring& ring, const Slice& own, const Slice& whole,
                     const Holds& holds = {});

/// Where a rank puts a chunk after it has folded its own part into it.
class RingPlaces {
public:
    /// Every chunk has its place in `whole`.
    explicit RingPlaces(const Slice& whole) : whole_(whole) {}

    /// Chunks take turns in a few slots of scratch; the own chunk goes to `result`.
    RingPlaces(Builder& builder, const Ring& ring, const Slice& result);

    Slice place(const Ring& ring, std::uint32_t chunk, std::uint32_t step) const;

private:
    // A slot is free again when the link has released what was sent from it. With a few slots more
    // than two, the ring does not wait for acknowledgements.
    static constexpr std::uint32_t kSlots = 4;

    Slice whole_;
    Slice slots_;
    std::uint32_t slot_count_ = 0;  // 0: chunks are in whole_
    std::uint64_t slot_size_ = 0;
};

/// Reduce-scatter around a ring: folds the `in` of all positions; position p ends with chunk p,
/// where `places` puts it.
///
///     world 4, chunk sent in step 0, 1, 2     0 -3-> 1 -0-> 2 -1-> 3 -2-> 0
///                                             0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
///                                             0 -1-> 1 -2-> 2 -3-> 3 -0-> 0
///
/// Chunk c starts at position c + 1, and each position on its way folds its own part in on the
/// right. So the operands are in the order c+1, c+2, ..., c, which is not the order of ranks and
/// differs from chunk to chunk. Steps: world - 1. Each rank sends every chunk except its own.
void ring_reduce_scatter(Builder& builder, const Ring& ring, const Slice& in,
                         const RingPlaces& places);

}  // namespace nexar::schedule
