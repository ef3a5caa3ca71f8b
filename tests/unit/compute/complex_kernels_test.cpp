#include <cmath>
#include <complex>
#include <limits>

#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

template <class Part>
void expect_product() {
    using Number = std::complex<Part>;
    on_every_target([] {
        const std::vector<Number> a(13, Number(1, 2));
        std::vector<Number> b;
        std::vector<Number> want;
        for (int i = 0; i < 13; ++i) {
            const auto x = static_cast<Part>(i);
            b.emplace_back(x, 4);
            want.emplace_back(x - 8, 4 + 2 * x);
        }
        EXPECT_EQ(folded(ReduceOp::product, a, b), want);
        EXPECT_EQ(folded(ReduceOp::product, b, a), want);
        EXPECT_EQ(folded(ReduceOp::sum, a, b)[3], Number(4, 6));
    });
}

TEST(ComplexKernels, multiply_and_add_in_both_parts) {
    expect_product<float>();
    expect_product<double>();
}

// Let u be the last place of 1: (1+u)^2 - 1 is 2u after rounding the square, 2u + u^2 if fused.
template <class Part>
void expect_unfused() {
    const Part u = std::numeric_limits<Part>::epsilon();
    const std::complex<Part> x(1 + u, 1);
    on_every_target([&] {
        const auto square = folded<std::complex<Part>>(ReduceOp::product, {x}, {x})[0];
        EXPECT_EQ(square.real(), 2 * u);
    });
}

TEST(ComplexKernels, round_each_product_before_subtracting) {
    expect_unfused<float>();
    expect_unfused<double>();
}

TEST(ComplexKernels, do_not_recover_infinities) {
    const double infinity = std::numeric_limits<double>::infinity();
    on_every_target([&] {
        const auto z =
            folded<std::complex<double>>(ReduceOp::product, {{infinity, 0}}, {{1, 1}})[0];
        EXPECT_EQ(z.real(), infinity - 0.0 * 1);
        EXPECT_EQ(z.imag(), infinity);
        const auto lost =
            folded<std::complex<double>>(ReduceOp::product, {{infinity, infinity}}, {{1, 1}})[0];
        EXPECT_TRUE(std::isnan(lost.real()));
    });
}

}  // namespace
}  // namespace nexar::compute
