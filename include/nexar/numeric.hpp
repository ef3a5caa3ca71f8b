#pragma once

#include <bit>
#include <compare>
#include <cstdint>

namespace nexar {

/// IEEE 754 binary16: 1 sign, 5 exponent and 10 fraction bits. A storage type: convert to float to
/// compute. Conversion from float rounds to nearest even, keeps subnormals, infinities and signed
/// zeros, and makes a NaN quiet, keeping its sign and the top bits of its payload.
class float16 {
public:
    constexpr float16() noexcept = default;
    explicit constexpr float16(float x) noexcept : bits_(rounded(x)) {}

    static constexpr float16 from_bits(std::uint16_t bits) noexcept {
        float16 x;
        x.bits_ = bits;
        return x;
    }
    constexpr std::uint16_t bits() const noexcept { return bits_; }

    explicit constexpr operator float() const noexcept {
        const std::uint32_t sign = (bits_ & 0x8000U) << 16;
        const std::uint32_t magnitude = bits_ & 0x7fffU;
        if (magnitude >= 0x7c00U) {  // infinity; NaN becomes quiet
            const std::uint32_t quiet = magnitude > 0x7c00U ? 0x400000U : 0U;
            return std::bit_cast<float>(sign | 0x7f800000U | quiet | (magnitude & 0x3ffU) << 13);
        }
        if (magnitude >= 0x0400U) {
            return std::bit_cast<float>(sign | ((magnitude << 13) + 0x38000000U));
        }
        // A subnormal is an integer times 2^-24; both factors and the product are exact in float.
        const float value = static_cast<float>(magnitude) * 0x1p-24F;
        return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(value));
    }

    /// IEEE comparison: NaN is unordered, -0 equals +0.
    friend constexpr std::partial_ordering operator<=>(float16 a, float16 b) noexcept {
        return static_cast<float>(a) <=> static_cast<float>(b);
    }
    friend constexpr bool operator==(float16 a, float16 b) noexcept {
        return static_cast<float>(a) == static_cast<float>(b);
    }

private:
    static constexpr std::uint16_t rounded(float x) noexcept {
        const auto bits = std::bit_cast<std::uint32_t>(x);
        const std::uint32_t sign = (bits >> 16) & 0x8000U;
        const std::uint32_t magnitude = bits & 0x7fffffffU;
        if (magnitude > 0x7f800000U) {
            return static_cast<std::uint16_t>(sign | 0x7e00U | ((magnitude >> 13) & 0x3ffU));
        }
        if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // 65520
        if (magnitude >= 0x38800000U) {  // 2^-14, the smallest normal
            const std::uint32_t up = magnitude + 0xfffU + ((magnitude >> 13) & 1U);
            return static_cast<std::uint16_t>(sign | ((up - 0x38000000U) >> 13));
        }
        if (magnitude <= 0x33000000U) return static_cast<std::uint16_t>(sign);  // up to 2^-25
        const std::uint32_t shift = 126U - (magnitude >> 23);                   // 14..24
        const std::uint32_t fraction = (magnitude & 0x7fffffU) | 0x800000U;
        const std::uint32_t kept = fraction >> shift;
        const std::uint32_t rest = fraction & ((1U << shift) - 1U);
        const std::uint32_t half = 1U << (shift - 1U);
        const std::uint32_t up = rest > half || (rest == half && (kept & 1U) != 0) ? 1U : 0U;
        return static_cast<std::uint16_t>(sign | (kept + up));
    }

    std::uint16_t bits_ = 0;
};

/// The upper half of a float: 1 sign, 8 exponent and 7 fraction bits. A storage type with the same
/// conversion rules as float16.
class bfloat16 {
public:
    constexpr bfloat16() noexcept = default;
    explicit constexpr bfloat16(float x) noexcept : bits_(rounded(x)) {}

    static constexpr bfloat16 from_bits(std::uint16_t bits) noexcept {
        bfloat16 x;
        x.bits_ = bits;
        return x;
    }
    constexpr std::uint16_t bits() const noexcept { return bits_; }

    explicit constexpr operator float() const noexcept {
        return std::bit_cast<float>(static_cast<std::uint32_t>(bits_) << 16);
    }

    /// IEEE comparison: NaN is unordered, -0 equals +0.
    friend constexpr std::partial_ordering operator<=>(bfloat16 a, bfloat16 b) noexcept {
        return static_cast<float>(a) <=> static_cast<float>(b);
    }
    friend constexpr bool operator==(bfloat16 a, bfloat16 b) noexcept {
        return static_cast<float>(a) == static_cast<float>(b);
    }

private:
    static constexpr std::uint16_t rounded(float x) noexcept {
        const auto bits = std::bit_cast<std::uint32_t>(x);
        if ((bits & 0x7fffffffU) > 0x7f800000U) {
            return static_cast<std::uint16_t>((bits >> 16) | 0x40U);
        }
        return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
    }

    std::uint16_t bits_ = 0;
};

/// A value and the index where it was found, for reductions with location. Padding between a small
/// value and `index` is not part of the value; results have it zeroed.
template <class T>
struct Located {
    T value{};
    std::int64_t index = 0;

    friend constexpr bool operator==(const Located&, const Located&) noexcept = default;
};

}  // namespace nexar
