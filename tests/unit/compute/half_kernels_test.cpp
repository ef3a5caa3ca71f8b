#include <set>

#include "unit/compute/rounding.hpp"
#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

constexpr std::array kHalfOps{ReduceOp::sum, ReduceOp::product, ReduceOp::min, ReduceOp::max};

struct Format {
    DType dtype;
    const HalfFormat& rounding;
    int fraction_bits;
};

std::array<Format, 2> formats() {
    return {Format{DType::f16, HalfFormat::f16(), 10}, Format{DType::bf16, HalfFormat::bf16(), 7}};
}

/// Zeros, subnormals and the edges of binades with their neighbours, the largest values, infinity,
/// quiet and signalling NaNs, and values whose sums and products are midpoints. The binades are
/// those near zero, near the smallest square root, near one, and near infinity; for f16, these are
/// all.
std::vector<std::uint16_t> special_values(const Format& format) {
    std::set<std::uint16_t> magnitudes;
    const unsigned infinity = format.rounding.infinity();
    const unsigned exponents = infinity >> format.fraction_bits;
    for (unsigned exponent = 0; exponent <= exponents; ++exponent) {
        const unsigned quarter = (exponents + 1) / 4;
        if (exponent % quarter >= 10 && exponent % quarter < quarter - 10) continue;
        const unsigned edge = exponent << format.fraction_bits;
        for (const unsigned step : {0U, 1U, 2U}) {
            magnitudes.insert(static_cast<std::uint16_t>(edge + step));
            if (edge > step) magnitudes.insert(static_cast<std::uint16_t>(edge - step));
        }
    }
    const unsigned quiet = 1U << (format.fraction_bits - 1);
    for (const unsigned nan : {infinity + 1, infinity + quiet, infinity + quiet + 1, 0x7fffU}) {
        magnitudes.insert(static_cast<std::uint16_t>(nan));
    }
    std::vector<std::uint16_t> values;
    for (const std::uint16_t magnitude : magnitudes) {
        values.push_back(magnitude);
        values.push_back(static_cast<std::uint16_t>(magnitude | 0x8000U));
    }
    return values;
}

void expect_all(const Format& format, const Bytes& a, const Bytes& b) {
    for (const ReduceOp op : kHalfOps) {
        const Bytes want = reference_fold(format.dtype, op, a, b);
        on_every_target([&] {
            ASSERT_EQ(difference(format.dtype, op, folded(format.dtype, op, a, b), want), "");
        });
    }
}

TEST(HalfKernels, pairs_of_special_values_are_correctly_rounded) {
    for (const Format& format : formats()) {
        const std::vector<std::uint16_t> values = special_values(format);
        std::vector<std::uint16_t> a;
        std::vector<std::uint16_t> b;
        for (const std::uint16_t x : values) {
            for (const std::uint16_t y : values) {
                a.push_back(x);
                b.push_back(y);
            }
        }
        ASSERT_NO_FATAL_FAILURE(expect_all(format, bytes_of(a), bytes_of(b)));
    }
}

TEST(HalfKernels, a_million_random_pairs_are_correctly_rounded) {
    Random random(seed());
    const std::size_t pairs = scaled(1U << 20);
    for (const Format& format : formats()) {
        for (int mix = 0; mix < 2; ++mix) {
            Bytes a = random_elements(format.dtype, pairs, random);
            Bytes b = random_elements(format.dtype, pairs, random);
            if (mix == 1) {  // any bits
                for (std::byte& x : a) x = static_cast<std::byte>(random());
                for (std::byte& x : b) x = static_cast<std::byte>(random());
            }
            ASSERT_NO_FATAL_FAILURE(expect_all(format, a, b));
        }
    }
}

TEST(HalfKernels, every_nan_result_has_the_canonical_bits) {
    const std::vector<std::uint16_t> f16_nans{0x7c01, 0xfc01, 0x7e00, 0xffff, 0x7c00};
    const std::vector<std::uint16_t> bf16_nans{0x7f81, 0xff81, 0x7fc0, 0xffff, 0x7f80};
    const std::vector<std::uint16_t> f16_other{0x3c00, 0x7c00, 0xfe01, 0x0000, 0xfc00};
    const std::vector<std::uint16_t> bf16_other{0x3f80, 0x7f80, 0xffc1, 0x0000, 0xff80};
    on_every_target([&] {
        const auto f16 = folded(DType::f16, ReduceOp::sum, bytes_of(f16_nans), bytes_of(f16_other));
        EXPECT_EQ(elements_of<std::uint16_t>(f16), std::vector<std::uint16_t>(5, 0x7e00));
        const auto bf16 =
            folded(DType::bf16, ReduceOp::sum, bytes_of(bf16_nans), bytes_of(bf16_other));
        EXPECT_EQ(elements_of<std::uint16_t>(bf16), std::vector<std::uint16_t>(5, 0x7fc0));
    });
}

TEST(HalfKernels, known_sums_round_to_even_and_overflow_to_infinity) {
    const auto f16_sum = [](std::uint16_t a, std::uint16_t b) {
        return elements_of<std::uint16_t>(folded(
            DType::f16, ReduceOp::sum, bytes_of(std::vector{a}), bytes_of(std::vector{b})))[0];
    };
    on_every_target([&] {
        EXPECT_EQ(f16_sum(0x3c00, 0x1000), 0x3c00);  // 1 + 2^-11: tie, stays even
        EXPECT_EQ(f16_sum(0x3c01, 0x1000), 0x3c02);  // tie, goes up to even
        EXPECT_EQ(f16_sum(0x3c00, 0x1001), 0x3c01);  // just above the tie
        EXPECT_EQ(f16_sum(0x7bff, 0x4c00), 0x7c00);  // 65504 + 16: the tie with infinity
        EXPECT_EQ(f16_sum(0x7bff, 0x4bff), 0x7bff);
        EXPECT_EQ(f16_sum(0x0001, 0x8002), 0x8001);  // subnormals
    });
}

}  // namespace
}  // namespace nexar::compute
