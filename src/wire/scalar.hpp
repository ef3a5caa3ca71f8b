#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>
#include "base/types.hpp"

#include "wire/fault.hpp"

/// The wire format of single values: unsigned, little-endian, 1 to 8 bytes. Implemented with
/// shifts, which compilers turn into one load or store, so the machine's byte order and alignment
/// do not matter.
namespace nexar::wire {

template <std::unsigned_integral T>
constexpr T load(const std::byte* from) noexcept {
    return [from]<std::size_t... I>(std::index_sequence<I...>) {
        return static_cast<T>(((static_cast<std::uint64_t>(from[I]) << (8 * I)) | ...));
    }(std::make_index_sequence<sizeof(T)>{});
}

template <std::unsigned_integral T>
constexpr void store(std::byte* to, T value) noexcept {
    [to, value]<std::size_t... I>(std::index_sequence<I...>) {
        ((to[I] = static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * I))), ...);
    }(std::make_index_sequence<sizeof(T)>{});
}

/// Maps a type to its number on the wire.
template <class T>
struct ScalarTraits;

template <std::unsigned_integral T>
struct ScalarTraits<T> {
    using Raw = T;
    static constexpr std::uint64_t kMax = std::numeric_limits<T>::max();
    static constexpr Raw to_raw(T value) noexcept { return value; }
    static constexpr T from_raw(Raw raw) noexcept { return raw; }
};

/// In two's complement.
template <>
struct ScalarTraits<std::int32_t> {
    using Raw = std::uint32_t;
    static constexpr std::uint64_t kMax = std::numeric_limits<Raw>::max();
    static constexpr Raw to_raw(std::int32_t value) noexcept { return static_cast<Raw>(value); }
    static constexpr std::int32_t from_raw(Raw raw) noexcept {
        return static_cast<std::int32_t>(raw);
    }
};

template <class Name, class Rep>
struct ScalarTraits<Strong<Name, Rep>> {
    using Raw = Rep;
    static constexpr std::uint64_t kMax = std::numeric_limits<Rep>::max();
    static constexpr Raw to_raw(Strong<Name, Rep> value) noexcept { return value.value(); }
    static constexpr Strong<Name, Rep> from_raw(Raw raw) noexcept { return Strong<Name, Rep>(raw); }
};

template <class T>
    requires std::is_enum_v<T>
struct ScalarTraits<T> {
    using Raw = std::underlying_type_t<T>;
    static constexpr std::uint64_t kMax = std::numeric_limits<Raw>::max();
    static constexpr Raw to_raw(T value) noexcept { return static_cast<Raw>(value); }
    static constexpr T from_raw(Raw raw) noexcept { return static_cast<T>(raw); }
};

/// Negative times cannot be sent: they map to numbers above kMax, which both ends reject.
template <>
struct ScalarTraits<std::chrono::nanoseconds> {
    using Raw = std::uint64_t;
    static constexpr std::uint64_t kMax = std::numeric_limits<std::int64_t>::max();
    static constexpr Raw to_raw(std::chrono::nanoseconds value) noexcept {
        return static_cast<Raw>(value.count());
    }
    static constexpr std::chrono::nanoseconds from_raw(Raw raw) noexcept {
        return std::chrono::nanoseconds(static_cast<std::int64_t>(raw));
    }
};

template <class T>
concept Scalar = requires { typename ScalarTraits<T>::Raw; };

template <Scalar T>
using Raw = typename ScalarTraits<T>::Raw;

/// Both ends are included.
struct Bounds {
    std::uint64_t min = 0;
    std::uint64_t max = std::numeric_limits<std::uint64_t>::max();
};

template <Scalar T>
inline constexpr Bounds kAnyValue{0, ScalarTraits<T>::kMax};

constexpr bool within(std::uint64_t found, Bounds bounds) noexcept {
    return found >= bounds.min && found <= bounds.max;
}

/// The fault for a number outside the bounds.
constexpr Fault out_of_bounds(std::string_view field, std::uint64_t found, Bounds bounds,
                              FaultKind above = FaultKind::above) noexcept {
    if (found > bounds.max) return {above, field, found, bounds.max};
    return {FaultKind::below, field, found, bounds.min};
}

}  // namespace nexar::wire
