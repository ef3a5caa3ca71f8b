// Converts vectors of f16 and bf16 to floats and rounds floats back. Compiled once per instruction
// set, like loop-inl.hpp.

#if defined(NEXAR_COMPUTE_HALF_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef NEXAR_COMPUTE_HALF_INL
#undef NEXAR_COMPUTE_HALF_INL
#else
#define NEXAR_COMPUTE_HALF_INL
#endif

#include <hwy/highway.h>

#include <cstdint>

#include "compute/loop-inl.hpp"

// 1 if the target has instructions that convert f16. Otherwise the integer code below does it.
#undef NEXAR_F16_INSTRUCTIONS
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || \
    (HWY_ARCH_X86 && HWY_TARGET >= HWY_SSE4) || defined(HWY_DISABLE_F16C)
#define NEXAR_F16_INSTRUCTIONS 0
#else
#define NEXAR_F16_INSTRUCTIONS 1
#endif

HWY_BEFORE_NAMESPACE();
namespace nexar::compute::HWY_NAMESPACE {

using FloatTag = hn::ScalableTag<float>;
using BitsTag = hn::ScalableTag<std::uint32_t>;
using FloatVector = hn::VFromD<FloatTag>;
using BitsVector = hn::VFromD<BitsTag>;

constexpr std::uint32_t kQuietNan = 0x7fc00000;

/// f16 elements, as many as a vector has floats.
using F16Tag = hn::Rebind<std::uint16_t, FloatTag>;
using F16Vector = hn::VFromD<F16Tag>;

#if NEXAR_F16_INSTRUCTIONS

HWY_INLINE FloatVector floats_of_f16(F16Vector v) {
    const hn::Rebind<hwy::float16_t, FloatTag> d16;
    return hn::PromoteTo(FloatTag(), hn::BitCast(d16, v));
}

/// Rounds to nearest even; every NaN becomes 0x7e00.
HWY_INLINE F16Vector f16_of_floats(FloatVector v) {
    const hn::Rebind<hwy::float16_t, FloatTag> d16;
    const FloatVector nan = hn::BitCast(FloatTag(), hn::Set(BitsTag(), kQuietNan));
    const FloatVector canonical = hn::IfThenElse(hn::IsNaN(v), nan, v);
    return hn::BitCast(F16Tag(), hn::DemoteTo(d16, canonical));
}

#else

HWY_INLINE FloatVector floats_of_f16(F16Vector v) {
    const BitsTag d;
    const FloatTag df;
    const BitsVector bits = hn::PromoteTo(d, v);
    const BitsVector magnitude = hn::And(bits, hn::Set(d, 0x7fffU));
    const BitsVector sign = hn::ShiftLeft<16>(hn::Xor(bits, magnitude));
    const BitsVector shifted = hn::ShiftLeft<13>(magnitude);
    const BitsVector normal = hn::Add(shifted, hn::Set(d, 0x38000000U));
    // 2^-14 with the fraction of a subnormal in its low bits, minus 2^-14: exact.
    const BitsVector above = hn::Add(shifted, hn::Set(d, 0x38800000U));
    const FloatVector subnormal = hn::Sub(hn::BitCast(df, above), hn::Set(df, 0x1p-14F));
    const BitsVector special = hn::Add(shifted, hn::Set(d, 0x70000000U));  // infinity and NaN
    const BitsVector finite =
        hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x0400U)), hn::BitCast(d, subnormal), normal);
    const BitsVector value =
        hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7bffU)), special, finite);
    return hn::BitCast(df, hn::Or(value, sign));
}

/// Rounds to nearest even; every NaN becomes 0x7e00.
HWY_INLINE F16Vector f16_of_floats(FloatVector v) {
    const BitsTag d;
    const FloatTag df;
    const BitsVector bits = hn::BitCast(d, v);
    const BitsVector magnitude = hn::And(bits, hn::Set(d, 0x7fffffffU));
    const BitsVector sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
    // Rebias the exponent and add half of the last kept unit, minus one if the result is even.
    const BitsVector odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(d, 1U));
    const BitsVector rebiased = hn::Sub(magnitude, hn::Set(d, 0x38000000U - 0xfffU));
    const BitsVector normal = hn::ShiftRight<13>(hn::Add(rebiased, odd));
    // The last bit of 0.5F is worth 2^-24, the smallest subnormal, so the addition rounds to it.
    const FloatVector half = hn::Set(df, 0.5F);
    const BitsVector subnormal =
        hn::Sub(hn::BitCast(d, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(d, half));
    const BitsVector finite =
        hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x38800000U)), subnormal, normal);
    // From 65520 on, the midpoint above the largest value, the result is infinity.
    const BitsVector limited =
        hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0x477ff000U)), finite, hn::Set(d, 0x7c00U));
    const BitsVector value = hn::IfThenElse(hn::Gt(magnitude, hn::Set(d, 0x7f800000U)),
                                            hn::Set(d, 0x7e00U), hn::Or(limited, sign));
    return hn::TruncateTo(F16Tag(), value);
}

#endif  // NEXAR_F16_INSTRUCTIONS

template <class Op, class... V>
HWY_INLINE F16Vector in_floats_of_f16(const Op& op, V... v) {
    return f16_of_floats(op(floats_of_f16(v)...));
}

/// bf16 elements are processed in pairs, one in each half of a 32-bit lane. Clearing the lower half
/// turns the upper element into a float; shifting the lane up turns the lower one into a float.
HWY_INLINE FloatVector upper_floats(BitsVector pairs) {
    const BitsTag d;
    return hn::BitCast(FloatTag(), hn::And(pairs, hn::Set(d, 0xffff0000U)));
}

HWY_INLINE FloatVector lower_floats(BitsVector pairs) {
    return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(pairs));
}

/// The bf16 nearest to each float (ties to even) in the upper half of its lane; the lower half is
/// undefined. Every NaN becomes 0x7fc0.
HWY_INLINE BitsVector rounded_in_upper_half(FloatVector v) {
    const BitsTag d;
    const BitsVector bits = hn::BitCast(d, v);
    const BitsVector odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 1U));
    const BitsVector rounded = hn::Add(hn::Add(bits, odd), hn::Set(d, 0x7fffU));
    return hn::IfThenElse(hn::RebindMask(d, hn::IsNaN(v)), hn::Set(d, kQuietNan), rounded);
}

template <class Op, class... V>
HWY_INLINE BitsVector in_floats_of_bf16(const Op& op, V... pairs) {
    const BitsTag d;
    const BitsVector upper = rounded_in_upper_half(op(upper_floats(pairs)...));
    const BitsVector lower = rounded_in_upper_half(op(lower_floats(pairs)...));
    return hn::Or(hn::And(upper, hn::Set(d, 0xffff0000U)), hn::ShiftRight<16>(lower));
}

}  // namespace nexar::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // NEXAR_COMPUTE_HALF_INL
