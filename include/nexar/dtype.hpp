#pragma once

#include <bit>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <nexar/export.hpp>
#include <nexar/numeric.hpp>
#include <ranges>
#include <string_view>
#include <type_traits>

namespace nexar {

/// The type of one element. The numbers are part of the wire format. A located type has the number
/// of its value's type plus 32.
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
    c64 = 13,     // std::complex<float>
    c128 = 14,    // std::complex<double>
    opaque = 15,  // bytes that nexar does not interpret; Buffer::opaque_size is the element size
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

/// How two elements are combined into one. The numbers are part of the wire format.
enum class ReduceOp : std::uint8_t {
    sum = 1,
    product = 2,
    min = 3,
    max = 4,
    average = 5,  // sums, then divides once at the end; integers round toward zero
    bit_and = 6,
    bit_or = 7,
    bit_xor = 8,
    logical_and = 9,
    logical_or = 10,
    logical_xor = 11,
    min_location = 12,  // for Located<T>; among equal values the lower index wins
    max_location = 13,
};

/// Size of one element in bytes; 0 for DType::opaque and for invalid numbers.
NEXAR_EXPORT std::size_t size_of(DType dtype) noexcept;

/// The name of the enumerator; "unknown" for an invalid number.
NEXAR_EXPORT std::string_view name(DType dtype) noexcept;
NEXAR_EXPORT std::string_view name(ReduceOp op) noexcept;

namespace detail {

template <class T>
inline constexpr bool is_number_v =
    std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, wchar_t> &&
    !std::same_as<T, char8_t> && !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;

/// The DType of T as a number, or 0 if T is not a numeric element type.
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

/// The types that the built-in operators reduce: integers of 8 to 64 bits, float16, bfloat16,
/// float, double, complex, and Located of the real ones.
template <class T>
concept Number = detail::DTypeNumber<std::remove_cv_t<T>>::value != 0;

namespace detail {

/// Types that refer to memory: their bytes are meaningless in another process.
template <class T>
inline constexpr bool is_reference_to_memory =
    std::is_pointer_v<T> || std::is_member_pointer_v<T> || std::is_null_pointer_v<T> ||
    std::ranges::view<T>;
template <class T>
inline constexpr bool is_reference_to_memory<std::initializer_list<T>> = true;
template <class T>
inline constexpr bool is_reference_to_memory<std::reference_wrapper<T>> = true;
template <std::ranges::range T>
    requires(!std::ranges::view<T>)
inline constexpr bool is_reference_to_memory<T> =
    is_reference_to_memory<std::ranges::range_value_t<T>>;

}  // namespace detail

/// The types that messages and collectives can carry: numbers, and every other trivially copyable
/// type that does not refer to memory (bool, std::byte, enumerations, structs, std::array of
/// these). The bytes of a struct are sent unchanged, including padding, so it must have the same
/// layout on all ranks.
template <class T>
concept Element = Number<T> || (std::is_trivially_copyable_v<T> && std::is_object_v<T> &&
                                !std::is_array_v<T> && !std::is_volatile_v<T> &&
                                sizeof(T) <= std::numeric_limits<std::uint32_t>::max() &&
                                !detail::is_reference_to_memory<std::remove_cv_t<T>>);

/// DType::opaque for elements that are not numbers.
template <Element T>
inline constexpr DType dtype_of =
    Number<T> ? static_cast<DType>(detail::DTypeNumber<std::remove_cv_t<T>>::value) : DType::opaque;

}  // namespace nexar
