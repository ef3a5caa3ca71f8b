#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <complex>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <nexar/dtype.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

/// Inputs of ranks to collectives, and the results by the definition of each operation, computed
/// without library code.
namespace nexar::testing {

/// For typed tests.
using AllElements = ::testing::Types<
    std::int8_t, std::uint8_t, std::int16_t, std::uint16_t, std::int32_t, std::uint32_t,
    std::int64_t, std::uint64_t, float16, bfloat16, float, double, std::complex<float>,
    std::complex<double>, Located<std::int8_t>, Located<std::uint8_t>, Located<std::int16_t>,
    Located<std::uint16_t>, Located<std::int32_t>, Located<std::uint32_t>, Located<std::int64_t>,
    Located<std::uint64_t>, Located<float16>, Located<bfloat16>, Located<float>, Located<double>>;

inline constexpr std::array kReduceOps{
    ReduceOp::sum,         ReduceOp::product,    ReduceOp::min,         ReduceOp::max,
    ReduceOp::average,     ReduceOp::bit_and,    ReduceOp::bit_or,      ReduceOp::bit_xor,
    ReduceOp::logical_and, ReduceOp::logical_or, ReduceOp::logical_xor, ReduceOp::min_location,
    ReduceOp::max_location};

/// True if the operator supports the type, according to the documentation.
bool makes_sense(DType dtype, ReduceOp op) noexcept;

/// The distribution of elements. Integers always have random bits, and their sums and products
/// wrap. For floats, every order of folding gives the same bits unless noted otherwise.
enum class Values : std::uint8_t {
    distinct,   // floats: any integer that the type holds exactly, not for sums
    summable,   // floats: -15 to 15, for sums over up to 16 ranks
    factors,    // floats: -4 to 4 without 0, for products over up to 3 ranks
    truths,     // one third are zero
    fractions,  // floats: 0 to 1, so that sums round
};

/// Values for which the fold of up to 3 ranks is exact.
Values values_for(ReduceOp op) noexcept;

/// Different bits for each position.
std::uint64_t random_bits(std::uint64_t seed, std::size_t rank, std::size_t element) noexcept;

/// Elements of all ranks, by rank.
template <class T>
using PerRank = std::vector<std::vector<T>>;

namespace numbers {

template <class T>
inline constexpr bool is_half = std::same_as<T, float16> || std::same_as<T, bfloat16>;
template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<std::complex<T>> = true;
template <class T>
inline constexpr bool is_located = false;
template <class T>
inline constexpr bool is_located<Located<T>> = true;

template <class T>
consteval int exact_bits() {
    if constexpr (std::same_as<T, float16>) return 11;
    if constexpr (std::same_as<T, bfloat16>) return 8;
    return std::numeric_limits<T>::digits;
}

template <class T>
T from_double(double x) {
    if constexpr (is_half<T>) return T(static_cast<float>(x));
    if constexpr (!is_half<T>) return static_cast<T>(x);
}

template <class T>
double to_double(T x) {
    if constexpr (is_half<T>) return static_cast<double>(static_cast<float>(x));
    if constexpr (!is_half<T>) return static_cast<double>(x);
}

/// A number that a float of `exact` bits represents exactly; the caller rounds fractions.
double real_of(Values values, std::uint64_t bits, int exact) noexcept;

std::string text(double x);
std::string text(std::int64_t x);
std::string text(std::uint64_t x);

template <class T>
std::string value_text(const T& x) {
    if constexpr (is_located<T>) {
        return value_text(x.value) + " at " + text(x.index);
    } else if constexpr (is_complex<T>) {
        return text(static_cast<double>(x.real())) + " + " + text(static_cast<double>(x.imag())) +
               "i";
    } else if constexpr (std::unsigned_integral<T>) {
        return text(static_cast<std::uint64_t>(x));
    } else if constexpr (std::signed_integral<T>) {
        return text(static_cast<std::int64_t>(x));
    } else {
        return text(to_double(x));
    }
}

std::string difference(std::size_t rank, std::size_t element, std::size_t count,
                       const std::string& got, const std::string& want);

template <std::integral T>
T combined_integers(ReduceOp op, T a, T b) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::average:
            return static_cast<T>(x + y);
        case ReduceOp::product:
            return static_cast<T>(x * y);
        case ReduceOp::bit_and:
            return static_cast<T>(x & y);
        case ReduceOp::bit_or:
            return static_cast<T>(x | y);
        case ReduceOp::bit_xor:
            return static_cast<T>(x ^ y);
        case ReduceOp::logical_and:
            return static_cast<T>(x != 0 && y != 0 ? 1 : 0);
        case ReduceOp::logical_or:
            return static_cast<T>(x != 0 || y != 0 ? 1 : 0);
        case ReduceOp::logical_xor:
            return static_cast<T>((x != 0) != (y != 0) ? 1 : 0);
        default:
            return op == ReduceOp::min ? std::min(a, b) : std::max(a, b);
    }
}

template <class T>
T combined_reals(ReduceOp op, T a, T b) {
    const double x = to_double(a);
    const double y = to_double(b);
    if (op == ReduceOp::min) return from_double<T>(std::min(x, y));
    if (op == ReduceOp::max) return from_double<T>(std::max(x, y));
    return from_double<T>(op == ReduceOp::product ? x * y : x + y);
}

template <class T>
std::complex<T> combined_complex(ReduceOp op, std::complex<T> a, std::complex<T> b) {
    if (op != ReduceOp::product) return {a.real() + b.real(), a.imag() + b.imag()};
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
Located<T> combined_located(ReduceOp op, const Located<T>& a, const Located<T>& b) {
    if (a.value == b.value) return a.index <= b.index ? a : b;
    return (a.value < b.value) == (op == ReduceOp::min_location) ? a : b;
}

}  // namespace numbers

template <Element T>
T value_of_bits(Values values, std::uint64_t bits) {
    using namespace numbers;
    if constexpr (std::integral<T>) {
        return values == Values::truths && bits % 3 == 0 ? T{} : static_cast<T>(bits);
    } else if constexpr (is_located<T>) {
        // Few values, so that the index often decides.
        using Value = decltype(T::value);
        return {.value = from_double<Value>(static_cast<double>(bits % 5)),
                .index = static_cast<std::int64_t>(bits >> 8U)};
    } else if constexpr (is_complex<T>) {
        using Part = typename T::value_type;
        constexpr int kExact = exact_bits<Part>();
        return {static_cast<Part>(real_of(values, bits, kExact)),
                static_cast<Part>(real_of(values, random_bits(bits, 1, 2), kExact))};
    } else {
        return from_double<T>(real_of(values, bits, exact_bits<T>()));
    }
}

/// The input of rank `rank`.
template <Element T>
std::vector<T> elements(Values values, std::uint64_t seed, std::size_t rank, std::size_t count) {
    std::vector<T> made(count);
    for (std::size_t i = 0; i < count; ++i) {
        made[i] = value_of_bits<T>(values, random_bits(seed, rank, i));
    }
    return made;
}

template <Element T>
PerRank<T> inputs(Values values, std::uint64_t seed, std::size_t world, std::size_t count) {
    PerRank<T> all(world);
    for (std::size_t rank = 0; rank < world; ++rank) {
        all[rank] = elements<T>(values, seed, rank, count);
    }
    return all;
}

/// Buffers for results, filled with values that no result has.
template <Element T>
PerRank<T> room(std::size_t world, std::size_t count) {
    return PerRank<T>(world, elements<T>(Values::distinct, 0xdead, 99, count));
}

template <Element T>
T combined(ReduceOp op, const T& a, const T& b) {
    using namespace numbers;
    if constexpr (std::integral<T>) return combined_integers(op, a, b);
    if constexpr (is_located<T>) return combined_located(op, a, b);
    if constexpr (is_complex<T>) return combined_complex(op, a, b);
    if constexpr (!std::integral<T> && !is_located<T> && !is_complex<T>) {
        return combined_reals(op, a, b);
    }
}

/// The quotient that completes an average.
template <Element T>
T divided(const T& sum, std::size_t world) {
    using namespace numbers;
    if constexpr (std::integral<T>) return static_cast<T>(sum / static_cast<T>(world));
    if constexpr (is_half<T>) {
        return T(static_cast<float>(sum) / static_cast<float>(world));
    }
    if constexpr (std::floating_point<T> || is_complex<T>) {
        if constexpr (is_complex<T>) {
            const auto by = static_cast<typename T::value_type>(world);
            return {sum.real() / by, sum.imag() / by};
        } else {
            return sum / static_cast<T>(world);
        }
    }
    return sum;
}

/// f(...f(f(rank 0, rank 1), rank 2)..., last rank) of the first `ranks` ranks, elementwise.
template <Element T, class F>
std::vector<T> folded_by(const F& f, const PerRank<T>& in, std::size_t ranks) {
    std::vector<T> result = in.front();
    for (std::size_t rank = 1; rank < ranks; ++rank) {
        for (std::size_t i = 0; i < result.size(); ++i) result[i] = f(result[i], in[rank][i]);
    }
    return result;
}

/// The same with a built-in operator; of all ranks by default.
template <Element T>
std::vector<T> folded(ReduceOp op, const PerRank<T>& in, std::size_t ranks = 0) {
    if (ranks == 0) ranks = in.size();
    auto result = folded_by([op](const T& a, const T& b) { return combined(op, a, b); }, in, ranks);
    if (op == ReduceOp::average) {
        for (T& x : result) x = divided(x, ranks);
    }
    return result;
}

template <class T>
std::vector<T> joined(const PerRank<T>& chunks) {
    std::vector<T> all;
    for (const auto& chunk : chunks) all.insert(all.end(), chunk.begin(), chunk.end());
    return all;
}

template <class T>
std::vector<T> part(const std::vector<T>& all, std::size_t from, std::size_t count) {
    const auto begin = all.begin() + static_cast<std::ptrdiff_t>(from);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

/// Success if the rank got exactly this; otherwise says which element differs and how.
template <Element T>
::testing::AssertionResult same(std::size_t rank, std::span<const T> got, std::span<const T> want) {
    if (got.size() != want.size()) {
        return ::testing::AssertionFailure()
               << "rank " << rank << ": got " << got.size() << " elements, wanted " << want.size();
    }
    for (std::size_t i = 0; i < got.size(); ++i) {
        if (got[i] == want[i]) continue;
        return ::testing::AssertionFailure() << numbers::difference(
                   rank, i, got.size(), numbers::value_text(got[i]), numbers::value_text(want[i]));
    }
    return ::testing::AssertionSuccess();
}
template <Element T>
::testing::AssertionResult same(std::size_t rank, const std::vector<T>& got,
                                const std::vector<T>& want) {
    return same(rank, std::span<const T>(got), std::span<const T>(want));
}

}  // namespace nexar::testing
