#include <bit>
#include <cmath>
#include <limits>

#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

template <class T>
class FloatKernels : public ::testing::Test {
protected:
    using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    static constexpr auto kCanonical =
        static_cast<Bits>(sizeof(T) == 4 ? 0x7fc00000 : 0x7ff8000000000000);
    static constexpr auto kSignalling =
        static_cast<Bits>(sizeof(T) == 4 ? 0xff800001 : 0xfff0000000000001);

    /// Checks several positions of a range that has whole vectors and a tail.
    static void expect(ReduceOp op, T a, T b, Bits want) {
        on_every_target([&] {
            const std::vector<T> result =
                folded(op, std::vector<T>(133, a), std::vector<T>(133, b));
            for (const T x : result) ASSERT_EQ(std::bit_cast<Bits>(x), want) << a << " " << b;
        });
    }
    static void expect(ReduceOp op, T a, T b, T want) {
        expect(op, a, b, std::bit_cast<Bits>(want));
        expect(op, b, a, std::bit_cast<Bits>(want));
    }
};

struct TypeNames {
    template <class T>
    static std::string GetName(int /*index*/) {  // NOLINT(readability-identifier-naming): gtest's
        return sizeof(T) == 4 ? "f32" : "f64";
    }
};

using Floats = ::testing::Types<float, double>;
TYPED_TEST_SUITE(FloatKernels, Floats, TypeNames);

TYPED_TEST(FloatKernels, min_and_max_put_minus_zero_below_zero) {
    const TypeParam zero = 0;
    this->expect(ReduceOp::min, zero, -zero, -zero);
    this->expect(ReduceOp::max, zero, -zero, zero);
    this->expect(ReduceOp::min, zero, zero, zero);
    this->expect(ReduceOp::max, -zero, -zero, -zero);
}

TYPED_TEST(FloatKernels, min_and_max_of_any_nan_are_the_canonical_nan) {
    using Limits = std::numeric_limits<TypeParam>;
    using Kernels = FloatKernels<TypeParam>;
    const auto signalling = std::bit_cast<TypeParam>(Kernels::kSignalling);
    const TypeParam infinity = Limits::infinity();
    for (const ReduceOp op : {ReduceOp::min, ReduceOp::max}) {
        for (const TypeParam nan : {signalling, -Limits::quiet_NaN()}) {
            for (const TypeParam other : {TypeParam{1}, -infinity, infinity, nan}) {
                this->expect(op, nan, other, Kernels::kCanonical);
                this->expect(op, other, nan, Kernels::kCanonical);
            }
        }
    }
}

TYPED_TEST(FloatKernels, min_and_max_order_numbers_of_every_size) {
    using Limits = std::numeric_limits<TypeParam>;
    const std::array<TypeParam, 8> ascending{
        -Limits::infinity(),  Limits::lowest(), TypeParam{-1}, -Limits::denorm_min(),
        Limits::denorm_min(), TypeParam{1},     Limits::max(), Limits::infinity()};
    for (std::size_t i = 0; i < ascending.size(); ++i) {
        for (std::size_t j = i; j < ascending.size(); ++j) {
            this->expect(ReduceOp::min, ascending[i], ascending[j], ascending[i]);
            this->expect(ReduceOp::max, ascending[i], ascending[j], ascending[j]);
        }
    }
}

TYPED_TEST(FloatKernels, sums_keep_subnormals_and_the_sign_of_zero) {
    using Limits = std::numeric_limits<TypeParam>;
    const TypeParam tiny = Limits::denorm_min();
    this->expect(ReduceOp::sum, tiny, 2 * tiny, 3 * tiny);
    this->expect(ReduceOp::sum, TypeParam{-0.0}, TypeParam{-0.0}, TypeParam{-0.0});
    this->expect(ReduceOp::sum, TypeParam{1}, TypeParam{-1}, TypeParam{0});
    this->expect(ReduceOp::product, Limits::min(), TypeParam{0.5}, Limits::min() / 2);
}

}  // namespace
}  // namespace nexar::compute
