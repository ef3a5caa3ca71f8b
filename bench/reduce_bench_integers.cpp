// Every integer kernel against a scalar loop, with data in the cache.

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "compute/reduce.hpp"
#include "compute/targets.hpp"
#include "reduce_bench.hpp"

namespace nexar::bench {

namespace {

constexpr std::array kIntegers{DType::i8,  DType::u8,  DType::i16, DType::u16,
                               DType::i32, DType::u32, DType::i64, DType::u64};
constexpr std::array kOps{ReduceOp::sum,        ReduceOp::product,     ReduceOp::min,
                          ReduceOp::max,        ReduceOp::bit_and,     ReduceOp::bit_or,
                          ReduceOp::bit_xor,    ReduceOp::logical_and, ReduceOp::logical_or,
                          ReduceOp::logical_xor};

/// A quarter of the elements are zero, for the logical operators.
void fill(const Buffer& buffer, std::size_t size, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    for (std::size_t i = 0; i < buffer.size(); i += size) {
        std::uint64_t element = random();
        if (random() % 4 == 0) element = 0;
        std::memcpy(buffer.data() + i, &element, size);
    }
}

/// The speed of the kernel relative to the scalar loop for one pair, both into the left operand.
/// NaN if their results differ.
double ratio(DType dtype, ReduceOp op, std::size_t operand_bytes, const MeasureOptions& options) {
    const compute::Reducer reducer = *compute::reducer_for(dtype, op);
    const Loop scalar = scalar_loop(dtype, op);
    const std::size_t count = operand_bytes / size_of(dtype);
    const Buffer a(operand_bytes);
    const Buffer b(operand_bytes);
    const Buffer scalar_a(operand_bytes);
    fill(b, size_of(dtype), 2);
    fill(a, size_of(dtype), 1);
    const std::vector<Timing> timings =
        measure({[&] { reducer.fold(a.data(), a.data(), b.data(), count); },
                 [&] { scalar(a.data(), a.data(), b.data(), count); }},
                options);

    fill(a, size_of(dtype), 1);
    fill(scalar_a, size_of(dtype), 1);
    reducer.fold(a.data(), a.data(), b.data(), count);
    scalar(scalar_a.data(), scalar_a.data(), b.data(), count);
    if (std::memcmp(a.data(), scalar_a.data(), operand_bytes) != 0) {
        fmt::print(stderr, "wrong result: {} {} differs from the scalar loop\n", name(dtype),
                   name(op));
        return std::numeric_limits<double>::quiet_NaN();
    }
    return timings[1].fastest / timings[0].fastest;
}

/// SVE and AVX-512 multiply 64-bit lanes; the other targets compose the product from narrower ones.
bool has_wide_product() {
    const std::string_view target = compute::kernel_target();
    return target.starts_with("SVE") || target.starts_with("AVX3");
}

bool is_wide_product(DType dtype, ReduceOp op) {
    return op == ReduceOp::product && size_of(dtype) == 8;
}

struct Slowest {
    double ratio = std::numeric_limits<double>::infinity();
    std::string pair;
};

}  // namespace

// The fold touches 32 KiB, two operands of 16 KiB, which fit into the L1 cache of most CPUs. With
// operands of 32 KiB, the data comes from L2, whose bandwidth then limits the wide integers instead
// of the arithmetic.
bool bench_integers(Report& report, const MeasureOptions& options) {
    Slowest slowest;
    Slowest slowest_from_l2;
    for (const DType dtype : kIntegers) {
        for (const ReduceOp op : kOps) {
            const std::string pair = fmt::format("{}_{}", name(dtype), name(op));
            const double here = ratio(dtype, op, 16 << 10, options);
            const double from_l2 = ratio(dtype, op, 32 << 10, options);
            if (std::isnan(here) || std::isnan(from_l2)) return false;
            report.row(fmt::format("int_{}_over_scalar", pair), here, "ratio");
            if (is_wide_product(dtype, op) && !has_wide_product()) {
                fmt::print("{} does not count for the minimum: {} has no 64-bit vector product\n",
                           pair, compute::kernel_target());
                continue;
            }
            if (here < slowest.ratio) slowest = {here, pair};
            if (from_l2 < slowest_from_l2.ratio) slowest_from_l2 = {from_l2, pair};
        }
    }
    fmt::print("slowest in L1: {}; slowest with operands of 32 KiB each: {}\n", slowest.pair,
               slowest_from_l2.pair);
    report.row("int_ops_over_scalar_min", slowest.ratio, "ratio");
    report.row("int_ops_over_scalar_min_from_l2", slowest_from_l2.ratio, "ratio");
    return true;
}

}  // namespace nexar::bench
