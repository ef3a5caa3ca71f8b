#pragma once

#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <nexar/export.hpp>
#include <nexar/numeric.hpp>
#include <string_view>
#include <type_traits>

namespace nexar {

/// The type of one element. Numbers are stable: they travel on the wire. A located type is the
/// number of its value's type plus 32.
enum class DType : std::uint8_t {
    i8 = 1,
    u8 = 2,
    i16 = 3,
    u16 = 4,
    i32 = 5,
    u32 = 6,
    i64 = 7,
    u64 = 8,
    f16 = 9,
    bf16 = 10,
    f32 = 11,
    f64 = 12,
    c64 = 13,   // std::complex<float>
    c128 = 14,  // std::complex<double>
    located_i8 = 33,
    located_u8 = 34,
    located_i16 = 35,
    located_u16 = 36,
    located_i32 = 37,
    located_u32 = 38,
    located_i64 = 39,
    located_u64 = 40,
    located_f16 = 41,
    located_bf16 = 42,
    located_f32 = 43,
    located_f64 = 44,
};

/// How two elements become one. Numbers are stable: they travel on the wire.
enum class ReduceOp : std::uint8_t {
    sum = 1,
    prod = 2,
    min = 3,
    max = 4,
    avg = 5,  // sums, then divides once at the end; integers round toward zero
    bit_and = 6,
    bit_or = 7,
    bit_xor = 8,
    logical_and = 9,
    logical_or = 10,
    logical_xor = 11,
    minloc = 12,  // for Located<T>; of equal values the lower index wins
    maxloc = 13,
};

/// Bytes of one element; 0 for a number that is no DType.
NEXAR_EXPORT std::size_t size_of(DType dtype) noexcept;

/// The name as written in the source; "unknown" for a number that is none.
NEXAR_EXPORT std::string_view name(DType dtype) noexcept;
NEXAR_EXPORT std::string_view name(ReduceOp op) noexcept;

namespace detail {

template <class T>
inline constexpr bool is_number_v =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// The DType of T as a number, or 0 where T is no element type.
template <class T>
struct DTypeNumber : std::integral_constant<int, 0> {};

template <class T>
    requires is_number_v<T>
struct DTypeNumber<T>
    : std::integral_constant<int, std::countr_zero(sizeof(T)) * 2 + (std::is_signed_v<T> ? 1 : 2)> {
};

template <>
struct DTypeNumber<float16> : std::integral_constant<int, 9> {};
template <>
struct DTypeNumber<bfloat16> : std::integral_constant<int, 10> {};
template <>
struct DTypeNumber<float> : std::integral_constant<int, 11> {};
template <>
struct DTypeNumber<double> : std::integral_constant<int, 12> {};
template <>
struct DTypeNumber<std::complex<float>> : std::integral_constant<int, 13> {};
template <>
struct DTypeNumber<std::complex<double>> : std::integral_constant<int, 14> {};

template <class T>
    requires(DTypeNumber<T>::value >= 1 && DTypeNumber<T>::value <= 12)
struct DTypeNumber<Located<T>> : std::integral_constant<int, DTypeNumber<T>::value + 32> {};

}  // namespace detail

/// What collectives and typed messages carry: integers of 8 to 64 bits, float16, bfloat16, float,
/// double, complex, and Located of the real ones.
template <class T>
concept Element = detail::DTypeNumber<std::remove_cv_t<T>>::value != 0;

template <Element T>
inline constexpr DType dtype_of =
    static_cast<DType>(detail::DTypeNumber<std::remove_cv_t<T>>::value);

}  // namespace nexar
