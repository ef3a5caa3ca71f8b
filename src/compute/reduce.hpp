#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/dtype.hpp>
#include <nexar/operators.hpp>
#include <nexar/result.hpp>

#include "compute/kernel.hpp"

namespace nexar::compute {

/// Folds a range with a user-defined operator.
using detail::UserFold;

/// Folds arrays of one element type with one operator. A small value, cheap to copy; any thread may
/// use it. Elements have their C++ layout, at any alignment.
///
/// Results have the same bits on every CPU and instruction set and at every position in the range,
/// with one exception: the sign and payload of a NaN that results from an f32, f64 or complex sum,
/// product or average.
///
/// - Integers: sum and product wrap modulo 2^n. logical_*: nonzero is true, the result is 0 or 1.
/// - f16, bf16: sum and product are correctly rounded to nearest even, subnormals included. A NaN
///   result is the canonical quiet one, 0x7e00 or 0x7fc0.
/// - min and max of floats are IEEE 754-2019 minimum and maximum: a NaN operand gives the canonical
///   quiet NaN, and -0 is below +0.
/// - min_location and max_location order values in the same way. A NaN wins. Among equal values, or
///   NaNs, the lower index wins. Padding of the result is zero.
/// - c64, c128: product is (ar*br - ai*bi, ar*bi + ai*br), every operation rounded, without the
///   recovery of infinities that C's Annex G describes.
/// - average folds as sum; finish() divides once. Integers round toward zero; f16 and bf16 round
///   correctly; f32, f64 and complex divide by the divisor rounded to their type.
///
/// Assumes the default rounding mode, with subnormals enabled.
class Reducer {
public:
    /// For a user-defined operator on elements of `element_size` bytes; `commutative` says whether
    /// a op b equals b op a.
    Reducer(DType dtype, std::size_t element_size, std::shared_ptr<const UserFold> user,
            bool commutative) noexcept;

    DType dtype() const noexcept { return dtype_; }
    std::size_t element_size() const noexcept { return element_size_; }
    bool commutative() const noexcept { return commutative_; }

    /// out = a op b, elementwise. `out` is exactly `a` (in place), exactly `b`, or overlaps
    /// neither; anything else is a bug and asserts. count * element_size() must not overflow, see
    /// byte_count(). Keeps the order of operands.
    void fold(std::byte* out, const std::byte* a, const std::byte* b, std::size_t count) const;

    /// Completes a reduction over `world` ranks (not 0): divides the sums of an average in place.
    /// Does nothing for other operators.
    void finish(std::byte* data, std::size_t count, std::uint32_t world) const;

private:
    friend Result<Reducer> reducer_for(DType dtype, ReduceOp op);
    Reducer(DType dtype, FoldKernel kernel, DivideKernel divide) noexcept;

    DType dtype_;
    bool commutative_;
    std::size_t element_size_;
    FoldKernel kernel_ = nullptr;    // null for a user-defined operator
    DivideKernel divide_ = nullptr;  // null unless an average
    std::shared_ptr<const UserFold> user_;
};

/// The reducer for a built-in operator. Fails with Errc::unsupported for pairs not listed here:
///
/// | type        | operators                                    |
/// |-------------|----------------------------------------------|
/// | integers    | sum product min max average bit_* logical_*  |
/// | real floats | sum product min max average                  |
/// | complex     | sum product average                          |
/// | Located     | min_location max_location                    |
/// | opaque      | none                                         |
Result<Reducer> reducer_for(DType dtype, ReduceOp op);

/// Writes the identity element of the operator, such as 0 for a sum. Fails with Errc::unsupported
/// for unsupported pairs, and for averages, which have none.
Result<void> put_identity(DType dtype, ReduceOp op, std::byte* out);

/// Bytes of `count` elements. Fails with Errc::invalid_argument if the size overflows or dtype is
/// unknown.
Result<std::size_t> byte_count(DType dtype, std::uint64_t count);

}  // namespace nexar::compute
