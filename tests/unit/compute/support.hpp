#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <nexar/dtype.hpp>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "compute/reduce.hpp"
#include "compute/targets.hpp"

namespace nexar::compute::testing {

using Bytes = std::vector<std::byte>;
using Random = std::mt19937_64;

inline constexpr std::array kIntegers{DType::i8,  DType::u8,  DType::i16, DType::u16,
                                      DType::i32, DType::u32, DType::i64, DType::u64};

inline constexpr std::array kDTypes{
    DType::i8,          DType::u8,          DType::i16,         DType::u16,
    DType::i32,         DType::u32,         DType::i64,         DType::u64,
    DType::f16,         DType::bf16,        DType::f32,         DType::f64,
    DType::c64,         DType::c128,        DType::located_i8,  DType::located_u8,
    DType::located_i16, DType::located_u16, DType::located_i32, DType::located_u32,
    DType::located_i64, DType::located_u64, DType::located_f16, DType::located_bf16,
    DType::located_f32, DType::located_f64,
};

inline constexpr std::array kOps{
    ReduceOp::sum,         ReduceOp::product,    ReduceOp::min,         ReduceOp::max,
    ReduceOp::average,     ReduceOp::bit_and,    ReduceOp::bit_or,      ReduceOp::bit_xor,
    ReduceOp::logical_and, ReduceOp::logical_or, ReduceOp::logical_xor, ReduceOp::min_location,
    ReduceOp::max_location};

bool is_integer(DType dtype);
bool is_located(DType dtype);
bool is_complex(DType dtype);

/// The rule in the documentation, implemented a second time.
bool makes_sense(DType dtype, ReduceOp op);

/// From NEXAR_TEST_SEED, otherwise a fixed seed. The first call prints it.
std::uint64_t seed();

/// Scales the number of random tries by NEXAR_TEST_VOLUME in percent, 100 if unset.
std::size_t scaled(std::size_t tries);

/// Calls `body` once for each kernel target of this machine; fails if there is none.
template <class Body>
void on_every_target(Body body) {
    const std::vector<std::string_view> targets = kernel_targets();
    ASSERT_FALSE(targets.empty());
    for (const std::string_view target : targets) {
        SCOPED_TRACE(std::string(target));
        use_kernel_target(target);
        body();
        if (::testing::Test::HasFatalFailure()) break;
    }
    use_kernel_target("");
}

/// Elements with many special values, ties and cancellations among random ones. The padding of
/// located elements is also random.
Bytes random_elements(DType dtype, std::size_t count, Random& random);

/// The result of `op` by its definition, computed one element at a time without library code.
Bytes reference_fold(DType dtype, ReduceOp op, const Bytes& a, const Bytes& b);

/// Compares bit for bit, except that NaNs of f32, f64 and complex arithmetic count as equal.
/// Returns an empty string if equal, otherwise a description of the first difference.
std::string difference(DType dtype, ReduceOp op, const Bytes& got, const Bytes& want);

template <class T>
Bytes bytes_of(const std::vector<T>& elements) {
    Bytes bytes(elements.size() * sizeof(T));
    if (!elements.empty()) std::memcpy(bytes.data(), elements.data(), bytes.size());
    return bytes;
}

template <class T>
std::vector<T> elements_of(const Bytes& bytes) {
    std::vector<T> elements(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
    return elements;
}

/// a op b, computed by the library into new memory.
Bytes folded(DType dtype, ReduceOp op, const Bytes& a, const Bytes& b);

template <class T>
std::vector<T> folded(ReduceOp op, const std::vector<T>& a, const std::vector<T>& b) {
    return elements_of<T>(folded(dtype_of<T>, op, bytes_of(a), bytes_of(b)));
}

}  // namespace nexar::compute::testing
