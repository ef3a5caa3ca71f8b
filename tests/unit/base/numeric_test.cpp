#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <nexar/numeric.hpp>

namespace nexar {
namespace {

// The value of a binary16, computed from its definition rather than with bit tricks.
double value_of_f16(std::uint16_t bits) {
    const int exponent = (bits >> 10) & 0x1f;
    const int fraction = bits & 0x3ff;
    const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 0) return sign * std::ldexp(fraction, -24);
    return sign * std::ldexp(1024 + fraction, exponent - 25);
}

bool is_nan_f16(unsigned bits) {
    return (bits & 0x7fffU) > 0x7c00U;
}

TEST(Float16, every_finite_value_converts_to_float_exactly) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        if ((bits & 0x7c00) == 0x7c00) continue;
        const auto h = float16::from_bits(static_cast<std::uint16_t>(bits));
        ASSERT_EQ(static_cast<double>(static_cast<float>(h)), value_of_f16(h.bits())) << bits;
    }
}

TEST(Float16, every_value_survives_the_round_trip_and_nan_becomes_quiet) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const auto h = float16::from_bits(static_cast<std::uint16_t>(bits));
        const unsigned back = float16(static_cast<float>(h)).bits();
        ASSERT_EQ(back, is_nan_f16(bits) ? bits | 0x0200U : bits);
    }
}

// Checks rounding at and around each midpoint of neighbours, the only places where it can go wrong.
TEST(Float16, rounds_to_nearest_even_between_all_neighbours) {
    for (std::uint16_t bits = 0; bits < 0x7bff; ++bits) {
        const double low = value_of_f16(bits);
        const double high = value_of_f16(static_cast<std::uint16_t>(bits + 1));
        const auto middle = static_cast<float>((low + high) / 2);  // exact: 12 bits
        const unsigned even = (bits & 1) == 0 ? bits : bits + 1U;
        const float inf = std::numeric_limits<float>::infinity();
        ASSERT_EQ(float16(middle).bits(), even);
        ASSERT_EQ(float16(std::nextafter(middle, inf)).bits(), bits + 1U);
        ASSERT_EQ(float16(std::nextafter(middle, -inf)).bits(), bits);
        ASSERT_EQ(float16(-middle).bits(), even | 0x8000U);
    }
}

TEST(Float16, overflows_to_infinity_from_65520_on) {
    EXPECT_EQ(float16(65504.0F).bits(), 0x7bff);
    EXPECT_EQ(float16(std::nextafter(65520.0F, 0.0F)).bits(), 0x7bff);
    EXPECT_EQ(float16(65520.0F).bits(), 0x7c00);
    EXPECT_EQ(float16(-std::numeric_limits<float>::infinity()).bits(), 0xfc00);
}

TEST(Bfloat16, every_value_survives_the_round_trip_and_nan_becomes_quiet) {
    for (unsigned bits = 0; bits < 0x10000; ++bits) {
        const auto b = bfloat16::from_bits(static_cast<std::uint16_t>(bits));
        const bool nan = (bits & 0x7fffU) > 0x7f80U;
        ASSERT_EQ(bfloat16(static_cast<float>(b)).bits(), nan ? bits | 0x0040U : bits);
    }
}

TEST(Bfloat16, rounds_to_nearest_even_between_all_neighbours) {
    for (std::uint32_t bits = 0; bits < 0x7f80; ++bits) {
        const std::uint32_t middle = (bits << 16) | 0x8000U;
        const auto rounded = [](std::uint32_t x) {
            return static_cast<std::uint32_t>(bfloat16(std::bit_cast<float>(x)).bits());
        };
        ASSERT_EQ(rounded(middle), (bits & 1) == 0 ? bits : bits + 1);
        ASSERT_EQ(rounded(middle + 1), bits + 1);
        ASSERT_EQ(rounded(middle - 1), bits);
        ASSERT_EQ(rounded((middle + 1) | 0x80000000U), (bits + 1) | 0x8000U);
    }
}

TEST(Bfloat16, a_nan_with_its_payload_in_the_low_half_stays_a_nan) {
    const auto nan = std::bit_cast<float>(0x7f800001U);
    EXPECT_EQ(bfloat16(nan).bits(), 0x7fc0);
}

TEST(HalfTypes, compare_as_ieee_numbers) {
    EXPECT_TRUE(float16(0.0F) == float16(-0.0F));
    EXPECT_TRUE(float16(1.0F) < float16(1.5F));
    EXPECT_FALSE(bfloat16(std::nanf("")) == bfloat16(std::nanf("")));
    EXPECT_EQ(bfloat16(1.0F) <=> bfloat16(std::nanf("")), std::partial_ordering::unordered);
}

}  // namespace
}  // namespace nexar
