// Tests all 2^32 pairs of both 16-bit formats, sums and products, on the best target. Takes a few
// minutes.

#include "unit/compute/rounding.hpp"
#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

constexpr std::size_t kValues = 0x10000;

/// HalfFormat::nearest for sorted arguments: continues from the previous result.
class Walk {
public:
    explicit Walk(const HalfFormat& format) : format_(format) {}

    std::uint16_t nearest(double size, double rest) {
        while (at_ < format_.midpoints() && above(size, rest, at_)) ++at_;
        while (at_ > 0 && !above(size, rest, at_ - 1)) --at_;
        return static_cast<std::uint16_t>(at_);
    }

private:
    /// True if the number rounds to a magnitude greater than i.
    bool above(double size, double rest, std::size_t i) const {
        const double midpoint = format_.midpoint(i);
        if (size != midpoint) return size > midpoint;
        return rest > 0 || (rest == 0 && i % 2 == 1);
    }

    const HalfFormat& format_;
    std::size_t at_ = 0;
};

std::uint16_t rounded(const HalfFormat& format, Walk& walk, ReduceOp op, double x, double y) {
    const double total = op == ReduceOp::sum ? x + y : x * y;
    if (!std::isfinite(total)) return format.special(total);
    double rest = 0;
    if (op == ReduceOp::sum) {
        const double y_part = total - x;
        rest = (x - (total - y_part)) + (y - y_part);
        if (total < 0) rest = -rest;
    }
    return HalfFormat::with_sign(walk.nearest(std::fabs(total), rest), std::signbit(total));
}

void expect_all_pairs(DType dtype, const HalfFormat& format, ReduceOp op) {
    const Reducer reducer = *reducer_for(dtype, op);
    std::vector<std::uint16_t> b(kValues);
    std::vector<double> values(kValues);
    for (std::size_t i = 0; i < kValues; ++i) {
        b[i] = static_cast<std::uint16_t>(i);
        values[i] = format.value(b[i]);
    }
    const Bytes right = bytes_of(b);
    Bytes out(right.size());
    Walk walk(format);
    for (std::size_t i = 0; i < kValues; ++i) {
        const Bytes left = bytes_of(std::vector(kValues, static_cast<std::uint16_t>(i)));
        reducer.fold(out.data(), left.data(), right.data(), kValues);
        const std::vector<std::uint16_t> got = elements_of<std::uint16_t>(out);
        for (std::size_t j = 0; j < kValues; ++j) {
            ASSERT_EQ(got[j], rounded(format, walk, op, values[i], values[j]))
                << name(dtype) << " " << name(op) << " of bits " << i << " and " << j;
        }
    }
}

TEST(HalfSoak, every_sum_of_f16_is_correctly_rounded) {
    expect_all_pairs(DType::f16, HalfFormat::f16(), ReduceOp::sum);
}

TEST(HalfSoak, every_product_of_f16_is_correctly_rounded) {
    expect_all_pairs(DType::f16, HalfFormat::f16(), ReduceOp::product);
}

TEST(HalfSoak, every_sum_of_bf16_is_correctly_rounded) {
    expect_all_pairs(DType::bf16, HalfFormat::bf16(), ReduceOp::sum);
}

TEST(HalfSoak, every_product_of_bf16_is_correctly_rounded) {
    expect_all_pairs(DType::bf16, HalfFormat::bf16(), ReduceOp::product);
}

}  // namespace
}  // namespace nexar::compute
