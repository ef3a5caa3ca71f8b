// The scalar loops that integer kernels are measured against. CMake compiles this file without the
// compiler's vectorisers.

#include <cstdint>

#include "reduce_bench.hpp"

namespace nexar::bench {

namespace {

template <class T, class Op>
void loop(std::byte* out_bytes, const std::byte* a_bytes, const std::byte* b_bytes,
          std::size_t count) {
    T* out = reinterpret_cast<T*>(out_bytes);
    const T* a = reinterpret_cast<const T*>(a_bytes);
    const T* b = reinterpret_cast<const T*>(b_bytes);
    for (std::size_t i = 0; i < count; ++i) out[i] = static_cast<T>(Op()(a[i], b[i]));
}

struct Sum {
    template <class T>
    auto operator()(T a, T b) const {
        return static_cast<std::make_unsigned_t<T>>(a) + static_cast<std::make_unsigned_t<T>>(b);
    }
};
struct Product {
    template <class T>
    auto operator()(T a, T b) const {
        return static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b);
    }
};
struct Min {
    template <class T>
    T operator()(T a, T b) const {
        return a < b ? a : b;
    }
};
struct Max {
    template <class T>
    T operator()(T a, T b) const {
        return a < b ? b : a;
    }
};
struct BitAnd {
    template <class T>
    auto operator()(T a, T b) const {
        return a & b;
    }
};
struct BitOr {
    template <class T>
    auto operator()(T a, T b) const {
        return a | b;
    }
};
struct BitXor {
    template <class T>
    auto operator()(T a, T b) const {
        return a ^ b;
    }
};
struct LogicalAnd {
    template <class T>
    bool operator()(T a, T b) const {
        return a != 0 && b != 0;
    }
};
struct LogicalOr {
    template <class T>
    bool operator()(T a, T b) const {
        return a != 0 || b != 0;
    }
};
struct LogicalXor {
    template <class T>
    bool operator()(T a, T b) const {
        return (a != 0) != (b != 0);
    }
};

template <class Op>
Loop by_type(DType dtype) {
    switch (dtype) {
        case DType::i8:
            return &loop<std::int8_t, Op>;
        case DType::u8:
            return &loop<std::uint8_t, Op>;
        case DType::i16:
            return &loop<std::int16_t, Op>;
        case DType::u16:
            return &loop<std::uint16_t, Op>;
        case DType::i32:
            return &loop<std::int32_t, Op>;
        case DType::u32:
            return &loop<std::uint32_t, Op>;
        case DType::i64:
            return &loop<std::int64_t, Op>;
        default:
            return &loop<std::uint64_t, Op>;
    }
}

}  // namespace

Loop scalar_loop(DType dtype, ReduceOp op) {
    switch (op) {
        case ReduceOp::product:
            return by_type<Product>(dtype);
        case ReduceOp::min:
            return by_type<Min>(dtype);
        case ReduceOp::max:
            return by_type<Max>(dtype);
        case ReduceOp::bit_and:
            return by_type<BitAnd>(dtype);
        case ReduceOp::bit_or:
            return by_type<BitOr>(dtype);
        case ReduceOp::bit_xor:
            return by_type<BitXor>(dtype);
        case ReduceOp::logical_and:
            return by_type<LogicalAnd>(dtype);
        case ReduceOp::logical_or:
            return by_type<LogicalOr>(dtype);
        case ReduceOp::logical_xor:
            return by_type<LogicalXor>(dtype);
        default:
            return by_type<Sum>(dtype);
    }
}

}  // namespace nexar::bench
