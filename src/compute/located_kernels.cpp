// Min and max with location. An element has 16 bytes, so memory bandwidth is the bottleneck and
// plain code keeps up with it.

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "compute/kernel.hpp"

namespace nexar::compute {

namespace {

static_assert(std::endian::native == std::endian::little, "a value fills the low bytes of a word");

constexpr std::size_t kElement = sizeof(Located<double>);
constexpr std::size_t kIndexAt = offsetof(Located<double>, index);

/// The constants needed to order floating-point values by their bits.
template <class T>
struct Format;
template <>
struct Format<float16> {
    using Bits = std::uint16_t;
    static constexpr Bits kInfinity = 0x7c00;
    static constexpr Bits kNan = 0x7e00;
};
template <>
struct Format<bfloat16> {
    using Bits = std::uint16_t;
    static constexpr Bits kInfinity = 0x7f80;
    static constexpr Bits kNan = 0x7fc0;
};
template <>
struct Format<float> {
    using Bits = std::uint32_t;
    static constexpr Bits kInfinity = 0x7f800000;
    static constexpr Bits kNan = 0x7fc00000;
};
template <>
struct Format<double> {
    using Bits = std::uint64_t;
    static constexpr Bits kInfinity = 0x7ff0000000000000;
    static constexpr Bits kNan = 0x7ff8000000000000;
};

/// The parts of an element, and the key by which its value is ordered.
struct Entry {
    std::uint64_t value;  // as stored; unused bytes are zero
    std::int64_t key;
    std::int64_t index;
};

template <class T, std::int64_t NanKey>
Entry keyed(std::uint64_t value, std::int64_t index) {
    if constexpr (std::is_signed_v<T> && std::is_integral_v<T>) {
        return {value, static_cast<T>(value), index};
    } else if constexpr (std::is_unsigned_v<T>) {
        constexpr std::uint64_t kSign = std::uint64_t{1} << 63;
        return {value, static_cast<std::int64_t>(value ^ kSign), index};
    } else {
        using F = Format<T>;
        using Bits = typename F::Bits;
        using Signed = std::make_signed_t<Bits>;
        constexpr auto kMagnitude = static_cast<Bits>(std::numeric_limits<Signed>::max());
        const auto bits = static_cast<Bits>(value);
        const auto magnitude = static_cast<Bits>(bits & kMagnitude);
        if (magnitude > F::kInfinity) return {F::kNan, NanKey, index};
        // -0 gets the key -1, below that of +0.
        const auto number = static_cast<std::int64_t>(magnitude);
        return {value, bits == magnitude ? number : -1 - number, index};
    }
}

template <class T, std::int64_t NanKey>
Entry loaded(const std::byte* p) {
    std::uint64_t value = 0;
    std::int64_t index = 0;
    std::memcpy(&value, p, sizeof(T));
    std::memcpy(&index, p + kIndexAt, sizeof(index));
    return keyed<T, NanKey>(value, index);
}

void store(const Entry& entry, std::byte* p) {
    std::memcpy(p, &entry.value, sizeof(entry.value));
    std::memcpy(p + kIndexAt, &entry.index, sizeof(entry.index));
}

/// Branch-free, because the outcome is unpredictable.
Entry chosen(bool first, const Entry& x, const Entry& y) {
    const std::uint64_t mask = first ? ~std::uint64_t{0} : 0;
    const auto index = static_cast<std::uint64_t>(y.index) ^
                       ((static_cast<std::uint64_t>(x.index ^ y.index)) & mask);
    return {y.value ^ ((x.value ^ y.value) & mask), 0, static_cast<std::int64_t>(index)};
}

/// Among equal keys the lower index wins. The key of a NaN beats every other key of its type.
template <class T>
void min_location(std::byte* out, const std::byte* a, const std::byte* b, std::size_t bytes) {
    constexpr std::int64_t kNanKey = std::numeric_limits<std::int64_t>::min();
    for (std::size_t i = 0; i < bytes; i += kElement) {
        const Entry x = loaded<T, kNanKey>(a + i);
        const Entry y = loaded<T, kNanKey>(b + i);
        const bool first = (x.key < y.key) | ((x.key == y.key) & (x.index <= y.index));
        store(chosen(first, x, y), out + i);
    }
}

template <class T>
void max_location(std::byte* out, const std::byte* a, const std::byte* b, std::size_t bytes) {
    constexpr std::int64_t kNanKey = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < bytes; i += kElement) {
        const Entry x = loaded<T, kNanKey>(a + i);
        const Entry y = loaded<T, kNanKey>(b + i);
        const bool first = (x.key > y.key) | ((x.key == y.key) & (x.index <= y.index));
        store(chosen(first, x, y), out + i);
    }
}

template <class T>
FoldKernel by_op(ReduceOp op) {
    if (op == ReduceOp::min_location) return &min_location<T>;
    if (op == ReduceOp::max_location) return &max_location<T>;
    return nullptr;
}

}  // namespace

FoldKernel located_fold(DType dtype, ReduceOp op) {
    switch (dtype) {
        case DType::located_i8:
            return by_op<std::int8_t>(op);
        case DType::located_u8:
            return by_op<std::uint8_t>(op);
        case DType::located_i16:
            return by_op<std::int16_t>(op);
        case DType::located_u16:
            return by_op<std::uint16_t>(op);
        case DType::located_i32:
            return by_op<std::int32_t>(op);
        case DType::located_u32:
            return by_op<std::uint32_t>(op);
        case DType::located_i64:
            return by_op<std::int64_t>(op);
        case DType::located_u64:
            return by_op<std::uint64_t>(op);
        case DType::located_f16:
            return by_op<float16>(op);
        case DType::located_bf16:
            return by_op<bfloat16>(op);
        case DType::located_f32:
            return by_op<float>(op);
        case DType::located_f64:
            return by_op<double>(op);
        default:
            return nullptr;
    }
}

}  // namespace nexar::compute
