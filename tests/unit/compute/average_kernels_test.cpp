#include <cmath>
#include <limits>

#include "unit/compute/rounding.hpp"
#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

constexpr std::array<std::uint32_t, 15> kWorlds{
    1, 2, 3, 7, 8, 10, 255, 1000, 4095, 4096, 4097, 65537, 16777217, 2147483648, 4294967295};

template <class T>
std::vector<T> divided(std::vector<T> sums, DType dtype, std::uint32_t world) {
    const Reducer reducer = *reducer_for(dtype, ReduceOp::average);
    reducer.finish(reinterpret_cast<std::byte*>(sums.data()), sums.size(), world);
    return sums;
}

template <class T>
void expect_truncation(const std::vector<T>& sums) {
    on_every_target([&] {
        for (const std::uint32_t world : kWorlds) {
            const std::vector<T> averages = divided(sums, dtype_of<T>, world);
            for (std::size_t i = 0; i < sums.size(); ++i) {
                using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
                const Wide want = static_cast<Wide>(sums[i]) / static_cast<Wide>(world);
                ASSERT_EQ(static_cast<Wide>(averages[i]), want) << +sums[i] << " / " << world;
            }
        }
    });
}

template <class T>
std::vector<T> every_value() {
    std::vector<T> values;
    for (int i = std::numeric_limits<T>::min(); i <= std::numeric_limits<T>::max(); ++i) {
        values.push_back(static_cast<T>(i));
    }
    return values;
}

/// Multiples of the divisors with their neighbours, where truncation can go wrong, and the ends.
template <class T>
std::vector<T> near_multiples() {
    std::vector<T> values{std::numeric_limits<T>::min(), std::numeric_limits<T>::max(), 0};
    Random random(seed());
    for (const std::uint32_t world : kWorlds) {
        for (std::size_t i = 0; i < scaled(200); ++i) {
            const auto multiple = static_cast<T>(
                static_cast<std::uint64_t>(static_cast<T>(random()) /
                                           static_cast<T>(std::max<T>(1, static_cast<T>(world)))) *
                world);
            for (const int step : {-1, 0, 1}) {
                values.push_back(static_cast<T>(static_cast<std::uint64_t>(multiple) +
                                                static_cast<std::uint64_t>(step)));
            }
        }
    }
    return values;
}

TEST(AverageKernels, every_small_integer_is_divided_toward_zero) {
    expect_truncation(every_value<std::int8_t>());
    expect_truncation(every_value<std::uint8_t>());
    expect_truncation(every_value<std::int16_t>());
    expect_truncation(every_value<std::uint16_t>());
}

TEST(AverageKernels, large_integers_are_divided_toward_zero) {
    expect_truncation(near_multiples<std::int32_t>());
    expect_truncation(near_multiples<std::uint32_t>());
    expect_truncation(near_multiples<std::int64_t>());
    expect_truncation(near_multiples<std::uint64_t>());
}

TEST(AverageKernels, every_half_is_divided_with_one_rounding) {
    std::vector<std::uint16_t> sums;
    for (unsigned bits = 0; bits < 0x10000; ++bits)
        sums.push_back(static_cast<std::uint16_t>(bits));
    const auto expect = [&sums](DType dtype, const HalfFormat& format, std::uint32_t world) {
        const std::vector<std::uint16_t> averages = divided(sums, dtype, world);
        for (std::size_t i = 0; i < sums.size(); ++i) {
            // The sum of one rank is already its average.
            const std::uint16_t want = world == 1 ? sums[i] : format.quotient(sums[i], world);
            ASSERT_EQ(averages[i], want) << name(dtype) << " " << sums[i] << " / " << world;
        }
    };
    on_every_target([&] {
        for (const std::uint32_t world : kWorlds) {
            expect(DType::f16, HalfFormat::f16(), world);
            expect(DType::bf16, HalfFormat::bf16(), world);
        }
    });
}

TEST(AverageKernels, floats_and_both_parts_of_complex_numbers_are_divided) {
    on_every_target([] {
        std::vector<float> f32;
        std::vector<double> f64;
        for (int i = 0; i < 37; ++i) {
            f32.push_back(static_cast<float>(i) - 11.5F);
            f64.push_back(i - 11.5);
        }
        const std::vector<float> f32_third = divided(f32, DType::f32, 3);
        const std::vector<double> f64_third = divided(f64, DType::f64, 3);
        for (std::size_t i = 0; i < f32.size(); ++i) {
            ASSERT_EQ(f32_third[i], f32[i] / 3);
            ASSERT_EQ(f64_third[i], f64[i] / 3);
        }
        using Complex = std::complex<float>;
        EXPECT_EQ(divided<Complex>({{3, -6}, {1, 9}}, DType::c64, 3)[0], Complex(1, -2));
        using Wide = std::complex<double>;
        EXPECT_EQ(divided<Wide>({{3, -6}, {1, 9}}, DType::c128, 2)[1], Wide(0.5, 4.5));
    });
}

TEST(AverageKernels, misaligned_sums_and_their_surroundings_are_safe) {
    Random random(seed());
    for (const DType dtype : kDTypes) {
        if (!makes_sense(dtype, ReduceOp::average)) continue;
        on_every_target([&] {
            const Bytes sums = random_elements(dtype, 61, random);
            Bytes aligned = sums;
            reducer_for(dtype, ReduceOp::average)->finish(aligned.data(), 61, 5);
            Bytes memory(sums.size() + 7, std::byte{0x77});
            std::memcpy(memory.data() + 3, sums.data(), sums.size());
            reducer_for(dtype, ReduceOp::average)->finish(memory.data() + 3, 61, 5);
            EXPECT_EQ(std::memcmp(memory.data() + 3, aligned.data(), sums.size()), 0);
            EXPECT_EQ(memory[2], std::byte{0x77});
            EXPECT_EQ(memory[sums.size() + 3], std::byte{0x77});
        });
    }
}

}  // namespace
}  // namespace nexar::compute
