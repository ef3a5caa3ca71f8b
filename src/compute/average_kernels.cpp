// The division that completes an average.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compute/average_kernels.cpp"
#include <hwy/foreach_target.h>  // must come before highway.h
#include <hwy/highway.h>

#include <bit>
#include <cmath>

#include "compute/half-inl.hpp"
#include "compute/kernel.hpp"
#include "compute/loop-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace nexar::compute::HWY_NAMESPACE {
namespace {

// Truncating the quotient computed in Wide gives the integer quotient: both operands are exact in
// Wide, and a true quotient below an integer q + 1 is below it by at least 1 / divisor, more than
// Wide's rounding can close (float for 16 bits, double for 32). The one operand that a float may
// round is a divisor above 2^24, where all 16-bit quotients are 0 either way. For 64-bit integers,
// Wide is the type itself. Plain loops: the compiler vectorises them for the target.
template <class T, class Wide>
void divide_integers(std::byte* data, std::size_t bytes, std::uint32_t divisor) {
    const auto wide_divisor = static_cast<Wide>(divisor);
    for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
        T x;
        std::memcpy(&x, data + i, sizeof(T));
        x = static_cast<T>(static_cast<Wide>(x) / wide_divisor);
        std::memcpy(data + i, &x, sizeof(T));
    }
}

template <class Lane>
struct Quotient {
    Lane divisor;

    template <class D, class V>
    HWY_INLINE V operator()(D d, V v) const {
        return hn::Div(v, hn::Set(d, divisor));
    }
};

template <class Lane>
void divide_floats(std::byte* data, std::size_t bytes, std::uint32_t divisor) {
    map<hn::ScalableTag<Lane>>(Quotient<Lane>{static_cast<Lane>(divisor)}, data, bytes);
}

struct FloatQuotient {
    float divisor;

    HWY_INLINE FloatVector operator()(FloatVector v) const {
        return hn::Div(v, hn::Set(FloatTag(), divisor));
    }
};

struct F16Quotient {
    FloatQuotient quotient;

    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V v) const {
        return in_floats_of_f16(quotient, v);
    }
};

struct Bf16Quotient {
    FloatQuotient quotient;

    template <class D, class V>
    HWY_INLINE V operator()(D /*d*/, V v) const {
        return in_floats_of_bf16(quotient, v);
    }
};

/// x rounded to odd: the adjacent float with an odd last bit unless x is exact. Rounding it to any
/// format of at most 22 bits gives the same result as rounding x itself (Boldo and Melquiond,
/// 2008).
float rounded_to_odd(double x) {
    const auto nearest = static_cast<float>(x);
    const auto bits = std::bit_cast<std::uint32_t>(nearest);
    if (static_cast<double>(nearest) == x || (bits & 1U) != 0) return nearest;
    const bool below = std::fabs(static_cast<double>(nearest)) < std::fabs(x);
    return std::bit_cast<float>(below ? bits + 1 : bits - 1);
}

/// For divisors above kWideDivisor: computes each element in double.
template <class T>
void divide_halves_wide(std::byte* data, std::size_t bytes, std::uint32_t divisor) {
    for (std::size_t i = 0; i < bytes; i += sizeof(T)) {
        T x;
        std::memcpy(&x, data + i, sizeof(T));
        const double quotient = static_cast<double>(static_cast<float>(x)) / divisor;
        x = std::isnan(quotient) ? T(std::bit_cast<float>(kQuietNan)) : T(rounded_to_odd(quotient));
        std::memcpy(data + i, &x, sizeof(T));
    }
}

// Rounding the quotient first to float and then to half is harmless only if the float is still on
// the same side of every midpoint m between halves: x/n - m is a multiple of 1/n in the unit of m,
// and m has up to 12 bits, so a float within 2^-13 of it separates them for n up to 2^12.
constexpr std::uint32_t kWideDivisor = 4096;

template <class T, class D, class Op>
void divide_halves(std::byte* data, std::size_t bytes, std::uint32_t divisor) {
    if (divisor > kWideDivisor) return divide_halves_wide<T>(data, bytes, divisor);
    map<D>(Op{{static_cast<float>(divisor)}}, data, bytes);
}

DivideKernel divide_here(DType dtype) {
    switch (dtype) {
        case DType::i8:
            return &divide_integers<std::int8_t, float>;
        case DType::u8:
            return &divide_integers<std::uint8_t, float>;
        case DType::i16:
            return &divide_integers<std::int16_t, float>;
        case DType::u16:
            return &divide_integers<std::uint16_t, float>;
        case DType::i32:
            return &divide_integers<std::int32_t, double>;
        case DType::u32:
            return &divide_integers<std::uint32_t, double>;
        case DType::i64:
            return &divide_integers<std::int64_t, std::int64_t>;
        case DType::u64:
            return &divide_integers<std::uint64_t, std::uint64_t>;
        case DType::f16:
            return &divide_halves<float16, F16Tag, F16Quotient>;
        case DType::bf16:
            return &divide_halves<bfloat16, BitsTag, Bf16Quotient>;
        case DType::f32:
        case DType::c64:
            return &divide_floats<float>;
        case DType::f64:
        case DType::c128:
            return &divide_floats<double>;
        default:
            return nullptr;
    }
}

}  // namespace
}  // namespace nexar::compute::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nexar::compute {

HWY_EXPORT(divide_here);

DivideKernel divide(DType dtype) {
    return HWY_DYNAMIC_DISPATCH(divide_here)(dtype);
}

}  // namespace nexar::compute
#endif  // HWY_ONCE
