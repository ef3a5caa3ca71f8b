#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/dtype.hpp>

/// The element kernels behind Reducer. Each function returns the kernel for the best instruction
/// set of this CPU (see targets.hpp), or null if the pair is not supported.
namespace nexar::compute {

/// out = a op b, elementwise, over `bytes` bytes, which must be a whole number of elements. Any
/// alignment. `out` is exactly `a`, exactly `b`, or disjoint from both.
using FoldKernel = void (*)(std::byte* out, const std::byte* a, const std::byte* b,
                            std::size_t bytes);

/// Divides every element of `data` by `divisor` (not 0) in place. Any alignment.
using DivideKernel = void (*)(std::byte* data, std::size_t bytes, std::uint32_t divisor);

FoldKernel integer_fold(DType dtype, ReduceOp op);
FoldKernel float_fold(DType dtype, ReduceOp op);    // f32, f64
FoldKernel half_fold(DType dtype, ReduceOp op);     // f16, bf16
FoldKernel complex_fold(DType dtype, ReduceOp op);  // c64, c128
FoldKernel located_fold(DType dtype, ReduceOp op);

/// The division that completes an average.
DivideKernel divide(DType dtype);

}  // namespace nexar::compute
