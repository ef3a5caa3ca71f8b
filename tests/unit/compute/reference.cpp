#include <complex>

#include "unit/compute/rounding.hpp"
#include "unit/compute/support.hpp"

namespace nexar::compute::testing {

namespace {

template <class T>
T integer_of(ReduceOp op, T a, T b) {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::average:
            return static_cast<T>(x + y);
        case ReduceOp::product:
            return static_cast<T>(x * y);
        case ReduceOp::min:
            return a < b ? a : b;
        case ReduceOp::max:
            return a < b ? b : a;
        case ReduceOp::bit_and:
            return static_cast<T>(x & y);
        case ReduceOp::bit_or:
            return static_cast<T>(x | y);
        case ReduceOp::bit_xor:
            return static_cast<T>(x ^ y);
        case ReduceOp::logical_and:
            return a != 0 && b != 0 ? 1 : 0;
        case ReduceOp::logical_or:
            return a != 0 || b != 0 ? 1 : 0;
        default:
            return (a != 0) != (b != 0) ? 1 : 0;
    }
}

template <class T>
T lesser(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        return a < b ? a : b;
    } else {
        if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
        if (a != b) return a < b ? a : b;
        return std::signbit(a) ? a : b;
    }
}

template <class T>
T greater(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
        return a < b ? b : a;
    } else {
        if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<T>::quiet_NaN();
        if (a != b) return a < b ? b : a;
        return std::signbit(a) ? b : a;
    }
}

template <class T>
T float_of(ReduceOp op, T a, T b) {
    switch (op) {
        case ReduceOp::product:
            return a * b;
        case ReduceOp::min:
            return lesser(a, b);
        case ReduceOp::max:
            return greater(a, b);
        default:
            return a + b;
    }
}

std::uint16_t half_of(const HalfFormat& format, ReduceOp op, std::uint16_t a, std::uint16_t b) {
    switch (op) {
        case ReduceOp::product:
            return format.product(a, b);
        case ReduceOp::min:
            return format.lesser(a, b);
        case ReduceOp::max:
            return format.greater(a, b);
        default:
            return format.sum(a, b);
    }
}

template <class Part>
std::array<Part, 2> complex_of(ReduceOp op, std::array<Part, 2> a, std::array<Part, 2> b) {
    if (op != ReduceOp::product) return {a[0] + b[0], a[1] + b[1]};
    const std::array<Part, 4> products{a[0] * b[0], a[1] * b[1], a[0] * b[1], a[1] * b[0]};
    return {products[0] - products[1], products[2] + products[3]};
}

template <class T, class F>
Bytes each(const Bytes& a, const Bytes& b, F f) {
    std::vector<T> x = elements_of<T>(a);
    const std::vector<T> y = elements_of<T>(b);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = f(x[i], y[i]);
    return bytes_of(x);
}

/// A located element as it must be in memory, with zero padding. Value is the stored form.
template <class Value>
struct Stored {
    Value value;
    std::array<std::byte, 8 - sizeof(Value)> padding;
    std::int64_t index;
};
template <class Value>
    requires(sizeof(Value) == 8)
struct Stored<Value> {
    Value value;
    std::int64_t index;
};

/// `best` is min or max of two stored values. The operand that equals the result wins; if both do,
/// as with two NaNs, the one with the lower index wins.
template <class Value, class Best, class IsNan>
Bytes located(const Bytes& a, const Bytes& b, Best best, IsNan is_nan) {
    static_assert(sizeof(Stored<Value>) == 16);
    return each<Stored<Value>>(a, b, [&](const Stored<Value>& x, const Stored<Value>& y) {
        const Value value = best(x.value, y.value);
        const auto wins = [&](const Stored<Value>& z) {
            return (is_nan(z.value) && is_nan(value)) ||
                   std::memcmp(&z.value, &value, sizeof(value)) == 0;
        };
        const bool first = wins(x) && (!wins(y) || x.index < y.index);
        Stored<Value> result{};
        result.value = value;
        result.index = first ? x.index : y.index;
        return result;
    });
}

template <class T>
Bytes located_number(ReduceOp op, const Bytes& a, const Bytes& b) {
    const auto best = [op](T x, T y) {
        return op == ReduceOp::min_location ? lesser(x, y) : greater(x, y);
    };
    return located<T>(a, b, best, [](T x) { return x != x; });
}

Bytes located_half(const HalfFormat& format, ReduceOp op, const Bytes& a, const Bytes& b) {
    const auto best = [op, &format](std::uint16_t x, std::uint16_t y) {
        return op == ReduceOp::min_location ? format.lesser(x, y) : format.greater(x, y);
    };
    return located<std::uint16_t>(a, b, best,
                                  [&format](std::uint16_t x) { return format.is_nan(x); });
}

template <class T>
Bytes integers(ReduceOp op, const Bytes& a, const Bytes& b) {
    return each<T>(a, b, [op](T x, T y) { return integer_of<T>(op, x, y); });
}

template <class T>
Bytes floats(ReduceOp op, const Bytes& a, const Bytes& b) {
    return each<T>(a, b, [op](T x, T y) { return float_of<T>(op, x, y); });
}

Bytes halves(const HalfFormat& format, ReduceOp op, const Bytes& a, const Bytes& b) {
    return each<std::uint16_t>(a, b, [op, &format](std::uint16_t x, std::uint16_t y) {
        return half_of(format, op, x, y);
    });
}

template <class Part>
Bytes complexes(ReduceOp op, const Bytes& a, const Bytes& b) {
    using Number = std::array<Part, 2>;
    return each<Number>(a, b,
                        [op](const Number& x, const Number& y) { return complex_of(op, x, y); });
}

Bytes located_reference(DType dtype, ReduceOp op, const Bytes& a, const Bytes& b) {
    switch (dtype) {
        case DType::located_i8:
            return located_number<std::int8_t>(op, a, b);
        case DType::located_u8:
            return located_number<std::uint8_t>(op, a, b);
        case DType::located_i16:
            return located_number<std::int16_t>(op, a, b);
        case DType::located_u16:
            return located_number<std::uint16_t>(op, a, b);
        case DType::located_i32:
            return located_number<std::int32_t>(op, a, b);
        case DType::located_u32:
            return located_number<std::uint32_t>(op, a, b);
        case DType::located_i64:
            return located_number<std::int64_t>(op, a, b);
        case DType::located_u64:
            return located_number<std::uint64_t>(op, a, b);
        case DType::located_f16:
            return located_half(HalfFormat::f16(), op, a, b);
        case DType::located_bf16:
            return located_half(HalfFormat::bf16(), op, a, b);
        case DType::located_f32:
            return located_number<float>(op, a, b);
        default:
            return located_number<double>(op, a, b);
    }
}

}  // namespace

Bytes reference_fold(DType dtype, ReduceOp op, const Bytes& a, const Bytes& b) {
    switch (dtype) {
        case DType::i8:
            return integers<std::int8_t>(op, a, b);
        case DType::u8:
            return integers<std::uint8_t>(op, a, b);
        case DType::i16:
            return integers<std::int16_t>(op, a, b);
        case DType::u16:
            return integers<std::uint16_t>(op, a, b);
        case DType::i32:
            return integers<std::int32_t>(op, a, b);
        case DType::u32:
            return integers<std::uint32_t>(op, a, b);
        case DType::i64:
            return integers<std::int64_t>(op, a, b);
        case DType::u64:
            return integers<std::uint64_t>(op, a, b);
        case DType::f16:
            return halves(HalfFormat::f16(), op, a, b);
        case DType::bf16:
            return halves(HalfFormat::bf16(), op, a, b);
        case DType::f32:
            return floats<float>(op, a, b);
        case DType::f64:
            return floats<double>(op, a, b);
        case DType::c64:
            return complexes<float>(op, a, b);
        case DType::c128:
            return complexes<double>(op, a, b);
        default:
            return located_reference(dtype, op, a, b);
    }
}

}  // namespace nexar::compute::testing
