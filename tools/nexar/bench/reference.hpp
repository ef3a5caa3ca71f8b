#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/buffer.hpp>
#include <nexar/dtype.hpp>

#include "schedule/request.hpp"

namespace nexar::bench {

/// Which data ranks have, and so what must come out. Every rank can say it for every other one.
///
/// Elements are small numbers that differ between ranks and between places, so that a wrong slice
/// is seen; sums of them are exact, or nearly so in the smallest types.
struct Reference {
    schedule::Collective operation = schedule::Collective::barrier;
    ReduceOp redop = ReduceOp::sum;
    DType dtype = DType::f32;
    std::uint32_t world = 1;
    std::uint32_t rank = 0;
    std::uint32_t root = 0;
    std::uint64_t chunk = 0;  // elements, of operations that divide the vector

    /// Where an element of the result comes from: that element of these ranks.
    struct Source {
        std::uint32_t first_rank = 0;
        std::uint32_t end_rank = 0;
        std::uint64_t index = 0;
    };
    Source source_of(std::uint64_t result_index) const noexcept;

    /// What this rank starts with.
    void fill(const Buffer& input) const;

    /// How many elements are not what they must be. Integers must be exact; floats may differ from
    /// the sum in double by what so many roundings make.
    std::uint64_t wrong(const ConstBuffer& result) const;
};

/// Bytes that are no right result.
void spoil(const Buffer& buffer);

}  // namespace nexar::bench
