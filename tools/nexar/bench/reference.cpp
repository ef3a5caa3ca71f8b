#include "bench/reference.hpp"

#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstring>
#include <limits>
#include <nexar/numeric.hpp>
#include <type_traits>

#include "base/assert.hpp"

namespace nexar::bench {

namespace {

using schedule::Collective;

/// The values of the elements: pseudo-random numbers in [lowest, lowest + range).
struct Pattern {
    std::uint64_t lowest = 0;
    std::uint64_t range = 1;

    std::uint64_t at(std::uint32_t rank, std::uint64_t index) const noexcept {
        std::uint64_t x = (index + 1) * 0x9e3779b97f4a7c15U + rank * 0xc2b2ae3d27d4eb4fU;
        x = (x ^ (x >> 29U)) * 0xbf58476d1ce4e5b9U;
        return lowest + (((x >> 32U) * range) >> 32U);
    }
};

Pattern pattern_of(const Reference& reference) noexcept {
    if (schedule::reduces(reference.operation)) {
        switch (reference.redop) {
            case ReduceOp::product:
                return {.lowest = 1, .range = 2};
            case ReduceOp::logical_and:
            case ReduceOp::logical_or:
            case ReduceOp::logical_xor:
                return {.lowest = 0, .range = 2};
            default:
                break;
        }
    }
    const bool small = size_of(reference.dtype) == 1 || reference.dtype == DType::f16 ||
                       reference.dtype == DType::bf16;
    return {.lowest = 0, .range = small ? 8U : 1024U};
}

template <class T>
constexpr bool is_half = std::same_as<T, float16> || std::same_as<T, bfloat16>;

template <class T>
T element_of(std::uint64_t value) noexcept {
    if constexpr (is_half<T>) {
        return T(static_cast<float>(value));
    } else {
        return static_cast<T>(value);
    }
}

template <class T>
double as_double(T element) noexcept {
    if constexpr (is_half<T>) {
        return static_cast<double>(static_cast<float>(element));
    } else {
        return static_cast<double>(element);
    }
}

template <class T>
constexpr double kUnit = std::numeric_limits<T>::epsilon();
template <>
constexpr double kUnit<float16> = 0x1p-10;
template <>
constexpr double kUnit<bfloat16> = 0x1p-7;

template <class Visit>
auto with_type(DType dtype, const Visit& visit) {
    switch (dtype) {
        case DType::i8:
            return visit(std::int8_t{});
        case DType::u8:
            return visit(std::uint8_t{});
        case DType::i16:
            return visit(std::int16_t{});
        case DType::u16:
            return visit(std::uint16_t{});
        case DType::i32:
            return visit(std::int32_t{});
        case DType::u32:
            return visit(std::uint32_t{});
        case DType::i64:
            return visit(std::int64_t{});
        case DType::u64:
            return visit(std::uint64_t{});
        case DType::f16:
            return visit(float16{});
        case DType::bf16:
            return visit(bfloat16{});
        case DType::f32:
            return visit(float{});
        default:
            NEXAR_ASSERT(dtype == DType::f64);
            return visit(double{});
    }
}

/// V is std::uint64_t, which wraps around like every integer type, or double.
template <class V>
V folded(ReduceOp op, V a, V b) noexcept {
    switch (op) {
        case ReduceOp::product:
            return a * b;
        case ReduceOp::min:
            return std::min(a, b);
        case ReduceOp::max:
            return std::max(a, b);
        default:
            break;
    }
    if constexpr (std::same_as<V, std::uint64_t>) {
        switch (op) {
            case ReduceOp::bit_and:
            case ReduceOp::logical_and:
                return a & b;  // the two are equal for 0 and 1
            case ReduceOp::bit_or:
            case ReduceOp::logical_or:
                return a | b;
            case ReduceOp::bit_xor:
            case ReduceOp::logical_xor:
                return a ^ b;
            default:
                break;
        }
    }
    return a + b;  // sum and average
}

template <class V>
V expected(const Reference& reference, const Pattern& pattern, const Reference::Source& source) {
    V value = static_cast<V>(pattern.at(source.first_rank, source.index));
    for (std::uint32_t rank = source.first_rank + 1; rank < source.end_rank; ++rank) {
        value = folded(reference.redop, value, static_cast<V>(pattern.at(rank, source.index)));
    }
    return value;
}

template <class T>
bool is_right(const Reference& reference, const Pattern& pattern, std::uint64_t index, T got) {
    const Reference::Source source = reference.source_of(index);
    const bool averages =
        schedule::reduces(reference.operation) && reference.redop == ReduceOp::average;
    if constexpr (std::integral<T>) {
        using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
        const auto sum = static_cast<T>(expected<std::uint64_t>(reference, pattern, source));
        return averages ? got == static_cast<T>(Wide{sum} / Wide{reference.world}) : got == sum;
    } else {
        double want = expected<double>(reference, pattern, source);
        if (averages) want /= reference.world;
        const double has = as_double(got);
        // Half a unit in the last place for each fold and for a division; no value is negative.
        return has == want || std::abs(has - want) <= want * kUnit<T> * reference.world / 2;
    }
}

}  // namespace

Reference::Source Reference::source_of(std::uint64_t result_index) const noexcept {
    const std::uint64_t own = rank * chunk;
    const auto from = [](std::uint64_t one, std::uint64_t index) {
        const auto it = static_cast<std::uint32_t>(one);
        return Source{.first_rank = it, .end_rank = it + 1, .index = index};
    };
    switch (operation) {
        case Collective::scan:
            return {.end_rank = rank + 1, .index = result_index};
        case Collective::exclusive_scan:
            return {.end_rank = rank, .index = result_index};
        case Collective::reduce_scatter:
            return {.end_rank = world, .index = own + result_index};
        case Collective::broadcast:
            return from(root, result_index);
        case Collective::scatter:
            return from(root, own + result_index);
        case Collective::all_gather:
        case Collective::gather:
            return from(result_index / chunk, result_index % chunk);
        case Collective::all_to_all:
            return from(result_index / chunk, own + result_index % chunk);
        default:
            return {.end_rank = world, .index = result_index};
    }
}

void Reference::fill(const Buffer& input) const {
    const Pattern pattern = pattern_of(*this);
    with_type(dtype, [&](auto zero) {
        auto* const elements = static_cast<decltype(zero)*>(input.data);
        for (std::uint64_t i = 0; i < input.count; ++i) {
            elements[i] = element_of<decltype(zero)>(pattern.at(rank, i));
        }
    });
}

std::uint64_t Reference::wrong(const ConstBuffer& result) const {
    const Pattern pattern = pattern_of(*this);
    return with_type(dtype, [&](auto zero) {
        const auto* const elements = static_cast<const decltype(zero)*>(result.data);
        std::uint64_t found = 0;
        for (std::uint64_t i = 0; i < result.count; ++i) {
            if (!is_right(*this, pattern, i, elements[i])) ++found;
        }
        return found;
    });
}

void spoil(const Buffer& buffer) {
    if (buffer.count != 0) std::memset(buffer.data, 0xa5, buffer.bytes());
}

}  // namespace nexar::bench
