#pragma once

#include <cstdint>
#include <functional>

#include "schedule/builder.hpp"
#include "schedule/chunks.hpp"

namespace nexar::schedule {

/// Who a rank's neighbours are: position p passes on to position p + 1, the last one to 0.
struct Ring {
    const Chunks& chunks;  // by position
    std::uint32_t position = 0;
    std::uint32_t first = 0;  // the rank at position 0

    std::uint32_t world() const noexcept { return chunks.world(); }
    std::uint32_t before() const noexcept;  // ranks
    std::uint32_t after() const noexcept;
};

/// Whether a position has a chunk, other than its own, before the gathering starts.
using Holds = std::function<bool(std::uint32_t position, std::uint32_t chunk)>;

/// Every position gives `own`, its chunk, and gets all of `whole`. If `own` is not in its place in
/// `whole` it is not copied there. Chunks that the receiver holds already do not travel.
///
///     world 4, chunk sent in step 0, 1, 2     0 -0-> 1 -1-> 2 -2-> 3 -3-> 0
///                                             0 -3-> 1 -0-> 2 -1-> 3 -2-> 0
///                                             0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
///
/// Steps: world - 1. Each rank sends all but the chunk of the position after it.
void ring_all_gather(Builder& builder, const Ring& ring, const Slice& own, const Slice& whole,
                     const Holds& holds = {});

/// Where a rank puts chunk `i` when it has folded its own part in.
class RingPlaces {
public:
    /// Every chunk at its place in `whole`.
    explicit RingPlaces(const Slice& whole) : whole_(whole) {}

    /// In a few slots of scratch, by turns; own chunk in `result`.
    RingPlaces(Builder& builder, const Ring& ring, const Slice& result);

    Slice place(const Ring& ring, std::uint32_t chunk, std::uint32_t step) const;

private:
    // A slot is free again once the link released what was sent from it; with a few more than two
    // the ring does not wait for acknowledgements.
    static constexpr std::uint32_t kSlots = 4;

    Slice whole_;
    Slice slots_;
    std::uint32_t slot_count_ = 0;  // 0: in whole_
    std::uint64_t slot_size_ = 0;
};

/// Folds the positions' `in`; position p ends with chunk p, in its place of `places`.
///
///     world 4, chunk sent in step 0, 1, 2     0 -3-> 1 -0-> 2 -1-> 3 -2-> 0
///                                             0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
///                                             0 -1-> 1 -2-> 2 -3-> 3 -0-> 0
///
/// Chunk c starts at position c + 1 and each position on its way adds its own part on the right, so
/// the fold is c+1, c+2, ..., c: not in the order of ranks, and another one for each chunk.
/// Steps: world - 1. Each rank sends all but its own chunk.
void ring_reduce_scatter(Builder& builder, const Ring& ring, const Slice& in,
                         const RingPlaces& places);

}  // namespace nexar::schedule
