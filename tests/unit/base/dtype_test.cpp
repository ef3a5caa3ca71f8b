#include <gtest/gtest.h>

#include <array>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <nexar/buffer.hpp>
#include <nexar/dtype.hpp>
#include <set>
#include <span>
#include <string>
#include <string_view>

namespace nexar {
namespace {

static_assert(!Number<bool> && !Number<std::byte> && !Number<char16_t> && !Number<long double>);
static_assert(!Number<Located<std::complex<float>>> && !Number<Located<Located<int>>>);
static_assert(Number<const float> && Number<long long> && Number<unsigned long>);

struct Particle {
    double place[3];
    int kind;
};
static_assert(Element<const float> && Element<bool> && Element<std::byte> && Element<Particle>);
static_assert(Element<std::array<double, 3>> && Element<std::array<Particle, 2>>);
static_assert(dtype_of<bool> == DType::opaque && dtype_of<Particle> == DType::opaque);
// Types that refer to memory are meaningless in another process.
static_assert(!Element<int*> && !Element<const char*> && !Element<int Particle::*>);
static_assert(!Element<std::span<int>> && !Element<std::string_view>);
static_assert(!Element<std::initializer_list<int>> && !Element<std::reference_wrapper<int>>);
static_assert(!Element<Buffer> && !Element<ConstBuffer> && !Element<std::array<int*, 2>>);
static_assert(!Element<std::array<std::span<int>, 2>> && !Element<std::string>);
static_assert(!Element<void> && !Element<int&> && !Element<int[3]> && !Element<int()>);
static_assert(dtype_of<long> == dtype_of<long long>);

template <class T>
void expect_dtype(DType dtype, std::string_view text) {
    EXPECT_EQ(dtype_of<T>, dtype);
    EXPECT_EQ(size_of(dtype), sizeof(T)) << text;
    EXPECT_EQ(name(dtype), text);
}

TEST(DType, of_every_element_type_has_its_size_and_name) {
    expect_dtype<std::int8_t>(DType::i8, "i8");
    expect_dtype<std::uint8_t>(DType::u8, "u8");
    expect_dtype<std::int16_t>(DType::i16, "i16");
    expect_dtype<std::uint16_t>(DType::u16, "u16");
    expect_dtype<std::int32_t>(DType::i32, "i32");
    expect_dtype<std::uint32_t>(DType::u32, "u32");
    expect_dtype<std::int64_t>(DType::i64, "i64");
    expect_dtype<std::uint64_t>(DType::u64, "u64");
    expect_dtype<float16>(DType::f16, "f16");
    expect_dtype<bfloat16>(DType::bf16, "bf16");
    expect_dtype<float>(DType::f32, "f32");
    expect_dtype<double>(DType::f64, "f64");
    expect_dtype<std::complex<float>>(DType::c64, "c64");
    expect_dtype<std::complex<double>>(DType::c128, "c128");
    expect_dtype<Located<std::int8_t>>(DType::located_i8, "located_i8");
    expect_dtype<Located<std::uint8_t>>(DType::located_u8, "located_u8");
    expect_dtype<Located<std::int16_t>>(DType::located_i16, "located_i16");
    expect_dtype<Located<std::uint16_t>>(DType::located_u16, "located_u16");
    expect_dtype<Located<std::int32_t>>(DType::located_i32, "located_i32");
    expect_dtype<Located<std::uint32_t>>(DType::located_u32, "located_u32");
    expect_dtype<Located<std::int64_t>>(DType::located_i64, "located_i64");
    expect_dtype<Located<std::uint64_t>>(DType::located_u64, "located_u64");
    expect_dtype<Located<float16>>(DType::located_f16, "located_f16");
    expect_dtype<Located<bfloat16>>(DType::located_bf16, "located_bf16");
    expect_dtype<Located<float>>(DType::located_f32, "located_f32");
    expect_dtype<Located<double>>(DType::located_f64, "located_f64");
    EXPECT_EQ(name(DType::opaque), "opaque");
    EXPECT_EQ(size_of(DType::opaque), 0U);
}

TEST(DType, unknown_numbers_have_no_size_and_no_name) {
    for (const int number : {0, 16, 31, 32, 45, 255}) {
        EXPECT_EQ(size_of(static_cast<DType>(number)), 0U) << number;
        EXPECT_EQ(name(static_cast<DType>(number)), "unknown") << number;
    }
}

TEST(ReduceOp, names_are_distinct_and_end_at_max_location) {
    std::set<std::string_view> names;
    for (int number = 1; number <= 13; ++number) names.insert(name(static_cast<ReduceOp>(number)));
    EXPECT_EQ(names.size(), 13U);
    EXPECT_EQ(name(ReduceOp::sum), "sum");
    EXPECT_EQ(name(ReduceOp::logical_xor), "logical_xor");
    EXPECT_EQ(name(ReduceOp::max_location), "max_location");
    EXPECT_EQ(name(static_cast<ReduceOp>(0)), "unknown");
    EXPECT_EQ(name(static_cast<ReduceOp>(14)), "unknown");
}

}  // namespace
}  // namespace nexar
