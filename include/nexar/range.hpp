#pragma once

#include <cstddef>
#include <nexar/dtype.hpp>
#include <nexar/export.hpp>
#include <ranges>
#include <type_traits>
#include <utility>
#include <vector>

/// The ranges and values that operations accept. An unsuitable argument must produce one clear
/// error message, so overload resolution considers only whether an argument is a range or a value,
/// and static assertions check the rest.

namespace nexar::detail {

/// Any range, suitable or not; never treated as a single value.
template <class R>
concept AnyRange = std::ranges::range<std::remove_cvref_t<R>>;

/// The untyped form of a range, see buffer.hpp.
template <class T>
inline constexpr bool is_buffer = false;

template <class T>
concept AnyValue = !AnyRange<T> && !is_buffer<std::remove_cvref_t<T>>;

template <class R>
concept Contiguous = std::ranges::contiguous_range<R> && std::ranges::sized_range<R>;

/// A list of ranges that together form one vector: its items are ranges and not themselves
/// elements.
template <class R>
concept Buckets = AnyRange<R> && AnyRange<std::ranges::range_value_t<std::remove_cvref_t<R>>> &&
                  !Element<std::ranges::range_value_t<std::remove_cvref_t<R>>>;

/// Integers of any type, such as the counts of a v-variant.
template <class R>
concept Integers = AnyRange<R> && std::integral<std::ranges::range_value_t<std::remove_cvref_t<R>>>;

/// True if R, the type of a forwarded argument, is a temporary that owns its elements.
template <class R>
concept Dangling = !std::is_lvalue_reference_v<R> && !std::ranges::borrowed_range<R>;

template <class R>
using ElementOf = std::ranges::range_value_t<std::remove_cvref_t<R>>;

/// Returns true whenever the program compiles. Returning false after a failed assertion suppresses
/// follow-up errors.
template <class R>
consteval bool check_input() {
    static_assert(
        Contiguous<R>,
        "nexar: this range is not contiguous in memory (std::vector<bool>, std::deque and "
        "std::list are not); copy its elements into a std::vector of another type");
    if constexpr (Contiguous<R>) {
        static_assert(!Dangling<R>,
                      "nexar: this temporary is destroyed while the operation still uses its "
                      "memory; keep it in a variable until the Work completes");
        static_assert(Element<ElementOf<R>>,
                      "nexar: an element must be trivially copyable and must not refer to memory, "
                      "as pointers and views do");
        return !Dangling<R> && Element<ElementOf<R>>;
    }
    return false;
}

template <class R>
consteval bool check_output() {
    if constexpr (check_input<R>()) {
        constexpr bool kWritable =
            !std::is_const_v<std::remove_reference_t<std::ranges::range_reference_t<R>>>;
        static_assert(kWritable,
                      "nexar: the operation writes its result into this range, but the elements "
                      "are const");
        return kWritable;
    }
    return false;
}

template <class In, class Out>
consteval bool check_both() {
    if constexpr (check_input<In>() && check_output<Out>()) {
        constexpr bool kSame = std::is_same_v<ElementOf<In>, ElementOf<Out>>;
        static_assert(kSame, "nexar: the input and the output must have the same element type");
        return kSame;
    }
    return false;
}

template <class T>
consteval bool check_value() {
    static_assert(!std::is_pointer_v<T>,
                  "nexar: a pointer does not say how many elements it points to; pass "
                  "std::span(pointer, count)");
    if constexpr (!std::is_pointer_v<T>) {
        static_assert(Element<T>,
                      "nexar: a value must be trivially copyable and must not refer to memory, as "
                      "pointers and views do");
    }
    return Element<T>;
}

template <class T>
consteval bool check_room() {
    static_assert(std::is_default_constructible_v<T>,
                  "nexar: elements that nexar receives into a new vector must be "
                  "default-constructible");
    return std::is_default_constructible_v<T>;
}

[[noreturn]] NEXAR_EXPORT void refuse_negative_count(std::size_t rank, long long count);

/// Counts or displacements, one per rank. Throws Errc::invalid_argument for a negative one.
template <Integers C>
std::vector<std::size_t> sizes_of(const C& counts) {
    std::vector<std::size_t> sizes;
    for (const auto count : counts) {
        if constexpr (std::is_signed_v<ElementOf<C>>) {
            if (count < 0) refuse_negative_count(sizes.size(), count);
        }
        sizes.push_back(static_cast<std::size_t>(count));
    }
    return sizes;
}

}  // namespace nexar::detail
