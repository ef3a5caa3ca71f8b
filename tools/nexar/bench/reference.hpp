#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/buffer.hpp>
#include <nexar/dtype.hpp>

#include "schedule/request.hpp"

namespace nexar::bench {

/// The input data of every rank, and thus the expected result. Any rank can compute the data of
/// every other rank.
///
/// Elements are small numbers that differ between ranks and between positions, so that a wrong
/// slice is detected. Their sums are exact, or nearly so in the smallest types.
struct Reference {
    schedule::Collective operation = schedule::Collective::barrier;
    ReduceOp redop = ReduceOp::sum;
    DType dtype = DType::f32;
    std::uint32_t world = 1;
    std::uint32_t rank = 0;
    std::uint32_t root = 0;
    std::uint64_t chunk = 0;  // elements, for operations that divide the vector

    /// The origin of an element of the result: element `index` of ranks [first_rank, end_rank).
    struct Source {
        std::uint32_t first_rank = 0;
        std::uint32_t end_rank = 0;
        std::uint64_t index = 0;
    };
    Source source_of(std::uint64_t result_index) const noexcept;

    /// Writes this rank's input data.
    void fill(const Buffer& input) const;

    /// The number of wrong elements. Integers must be exact; floats may differ from the result in
    /// double precision by the accumulated rounding error.
    std::uint64_t wrong(const ConstBuffer& result) const;
};

/// Fills the buffer with bytes that are not a correct result.
void spoil(const Buffer& buffer);

}  // namespace nexar::bench
