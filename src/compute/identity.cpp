// The identity elements of the operators.

#include <fmt/format.h>

#include <complex>
#include <cstddef>
#include <cstring>
#include <limits>
#include <nexar/numeric.hpp>

#include "compute/reduce.hpp"

namespace nexar::compute {

namespace {

template <class T>
constexpr bool is_half = std::is_same_v<T, float16> || std::is_same_v<T, bfloat16>;

/// The largest value, infinity included.
template <class T>
T highest() {
    if constexpr (is_half<T>) {
        return T(std::numeric_limits<float>::infinity());
    } else if constexpr (std::numeric_limits<T>::has_infinity) {
        return std::numeric_limits<T>::infinity();
    } else {
        return std::numeric_limits<T>::max();
    }
}
template <class T>
T lowest() {
    if constexpr (is_half<T>) {
        return T(-std::numeric_limits<float>::infinity());
    } else if constexpr (std::numeric_limits<T>::has_infinity) {
        return -std::numeric_limits<T>::infinity();
    } else {
        return std::numeric_limits<T>::lowest();
    }
}
template <class T>
T number(int value) {
    if constexpr (is_half<T>) {
        return T(static_cast<float>(value));
    } else if constexpr (std::is_arithmetic_v<T>) {
        return static_cast<T>(value);
    } else {
        return T(static_cast<typename T::value_type>(value));
    }
}

/// Requires a supported pair of type and operator.
template <class T>
T identity(ReduceOp op) {
    switch (op) {
        case ReduceOp::product:
        case ReduceOp::logical_and:
            return number<T>(1);
        case ReduceOp::bit_and:
            return number<T>(-1);
        case ReduceOp::min:
            if constexpr (std::is_arithmetic_v<T> || is_half<T>) return highest<T>();
            break;
        case ReduceOp::max:
            if constexpr (std::is_arithmetic_v<T> || is_half<T>) return lowest<T>();
            break;
        default:
            break;
    }
    return number<T>(0);
}

template <class T>
void put(ReduceOp op, std::byte* out) {
    const T value = identity<T>(op);
    std::memcpy(out, &value, sizeof(value));
}

/// Among equal values the lower index wins, so the identity has the highest index.
template <class T>
void put_located(ReduceOp op, std::byte* out) {
    const T value = op == ReduceOp::min_location ? highest<T>() : lowest<T>();
    const std::int64_t index = std::numeric_limits<std::int64_t>::max();
    std::memset(out, 0, sizeof(Located<T>));  // padding included
    std::memcpy(out + offsetof(Located<T>, value), &value, sizeof(value));
    std::memcpy(out + offsetof(Located<T>, index), &index, sizeof(index));
}

using Put = void (*)(ReduceOp op, std::byte* out);

template <template <class> class Of>
Put put_for(unsigned number) {
    switch (static_cast<DType>(number)) {
        case DType::i8:
            return &Of<std::int8_t>::run;
        case DType::u8:
            return &Of<std::uint8_t>::run;
        case DType::i16:
            return &Of<std::int16_t>::run;
        case DType::u16:
            return &Of<std::uint16_t>::run;
        case DType::i32:
            return &Of<std::int32_t>::run;
        case DType::u32:
            return &Of<std::uint32_t>::run;
        case DType::i64:
            return &Of<std::int64_t>::run;
        case DType::u64:
            return &Of<std::uint64_t>::run;
        case DType::f16:
            return &Of<float16>::run;
        case DType::bf16:
            return &Of<bfloat16>::run;
        case DType::f32:
            return &Of<float>::run;
        default:
            return &Of<double>::run;
    }
}

template <class T>
struct Plain {
    static void run(ReduceOp op, std::byte* out) { put<T>(op, out); }
};
template <class T>
struct WithIndex {
    static void run(ReduceOp op, std::byte* out) { put_located<T>(op, out); }
};

constexpr unsigned kLocated = 32;

}  // namespace

Result<void> put_identity(DType dtype, ReduceOp op, std::byte* out) {
    if (const auto reducer = reducer_for(dtype, op); !reducer) return reducer.error();
    if (op == ReduceOp::average) {
        return Error(Errc::unsupported, "an average has no identity");
    }
    const auto number = static_cast<unsigned>(dtype);
    if (number > kLocated) {
        put_for<WithIndex>(number - kLocated)(op, out);
    } else if (dtype == DType::c64) {
        put<std::complex<float>>(op, out);
    } else if (dtype == DType::c128) {
        put<std::complex<double>>(op, out);
    } else {
        put_for<Plain>(number)(op, out);
    }
    return {};
}

}  // namespace nexar::compute
