#include "support/collective_data.hpp"

#include <fmt/format.h>

#include "base/mix.hpp"

namespace nexar::testing {

namespace {

enum class Kind : std::uint8_t { integer, real, complex, located };

Kind kind_of(DType dtype) noexcept {
    if (dtype >= DType::located_i8) return Kind::located;
    if (dtype >= DType::c64) return Kind::complex;
    return dtype >= DType::f16 ? Kind::real : Kind::integer;
}

}  // namespace

bool makes_sense(DType dtype, ReduceOp op) noexcept {
    const Kind kind = kind_of(dtype);
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::product:
        case ReduceOp::average:
            return kind != Kind::located;
        case ReduceOp::min:
        case ReduceOp::max:
            return kind == Kind::integer || kind == Kind::real;
        case ReduceOp::min_location:
        case ReduceOp::max_location:
            return kind == Kind::located;
        default:
            return kind == Kind::integer;
    }
}

Values values_for(ReduceOp op) noexcept {
    switch (op) {
        case ReduceOp::sum:
        case ReduceOp::average:
            return Values::summable;
        case ReduceOp::product:
            return Values::factors;
        case ReduceOp::logical_and:
        case ReduceOp::logical_or:
        case ReduceOp::logical_xor:
            return Values::truths;
        default:
            return Values::distinct;
    }
}

std::uint64_t random_bits(std::uint64_t seed, std::size_t rank, std::size_t element) noexcept {
    return mixed(mixed(seed * 0x9e3779b97f4a7c15U + rank + 1) + element);
}

namespace numbers {

double real_of(Values values, std::uint64_t bits, int exact) noexcept {
    const double sign = (bits & 1U) != 0 ? -1.0 : 1.0;
    const std::uint64_t rest = bits >> 1U;
    switch (values) {
        case Values::summable:
            return static_cast<double>(rest % 31) - 15.0;
        case Values::factors:
            return sign * static_cast<double>(rest % 4 + 1);
        case Values::fractions:
            return static_cast<double>(bits >> 11U) * 0x1p-53;
        default:
            break;
    }
    if (values == Values::truths && rest % 3 == 0) return 0.0;
    return sign * static_cast<double>(rest & ((std::uint64_t{1} << exact) - 1));
}

std::string text(double x) {
    return fmt::format("{}", x);
}

std::string text(std::int64_t x) {
    return fmt::format("{}", x);
}

std::string text(std::uint64_t x) {
    return fmt::format("{}", x);
}

std::string difference(std::size_t rank, std::size_t element, std::size_t count,
                       const std::string& got, const std::string& want) {
    return fmt::format("rank {}, element {} of {}: got {}, wanted {}", rank, element, count, got,
                       want);
}

}  // namespace numbers

}  // namespace nexar::testing
