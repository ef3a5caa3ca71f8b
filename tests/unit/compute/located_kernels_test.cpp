#include <bit>
#include <cmath>
#include <limits>

#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

using Double = Located<double>;

Double one(ReduceOp op, Double a, Double b) {
    return folded<Double>(op, {a}, {b})[0];
}

TEST(LocatedKernels, the_winning_value_keeps_its_index) {
    EXPECT_EQ(one(ReduceOp::min_location, {3, 9}, {2, 1}), (Double{2, 1}));
    EXPECT_EQ(one(ReduceOp::max_location, {3, 9}, {2, 1}), (Double{3, 9}));
    using Small = Located<std::uint8_t>;
    EXPECT_EQ(folded<Small>(ReduceOp::max_location, {{200, 4}}, {{100, 2}})[0], (Small{200, 4}));
    using Large = Located<std::uint64_t>;
    EXPECT_EQ(folded<Large>(ReduceOp::min_location, {{UINT64_MAX, 4}}, {{0, 7}})[0], (Large{0, 7}));
    using Signed = Located<std::int64_t>;
    EXPECT_EQ(folded<Signed>(ReduceOp::max_location, {{INT64_MIN, 1}}, {{INT64_MAX, 2}})[0],
              (Signed{INT64_MAX, 2}));
}

TEST(LocatedKernels, the_lower_index_of_equal_values_wins_on_either_side) {
    for (const ReduceOp op : {ReduceOp::min_location, ReduceOp::max_location}) {
        EXPECT_EQ(one(op, {5, -3}, {5, 2}), (Double{5, -3}));
        EXPECT_EQ(one(op, {5, 2}, {5, -3}), (Double{5, -3}));
    }
}

TEST(LocatedKernels, minus_zero_is_below_zero) {
    EXPECT_EQ(one(ReduceOp::min_location, {0.0, 1}, {-0.0, 2}).index, 2);
    EXPECT_EQ(one(ReduceOp::max_location, {0.0, 2}, {-0.0, 1}).index, 2);
    EXPECT_TRUE(std::signbit(one(ReduceOp::min_location, {0.0, 1}, {-0.0, 2}).value));
}

TEST(LocatedKernels, a_nan_wins_in_canonical_form_and_the_lower_index_of_two) {
    const double infinity = std::numeric_limits<double>::infinity();
    const auto nan = std::bit_cast<double>(0xfff0000000000001);  // signalling, negative
    for (const ReduceOp op : {ReduceOp::min_location, ReduceOp::max_location}) {
        for (const double other : {infinity, -infinity, 0.0}) {
            const Double first = one(op, {nan, 8}, {other, 1});
            const Double second = one(op, {other, 1}, {nan, 8});
            EXPECT_EQ(first.index, 8);
            EXPECT_EQ(second.index, 8);
            EXPECT_EQ(std::bit_cast<std::uint64_t>(first.value), 0x7ff8000000000000);
            EXPECT_EQ(std::bit_cast<std::uint64_t>(second.value), 0x7ff8000000000000);
        }
        EXPECT_EQ(one(op, {nan, 8}, {std::nan(""), 3}).index, 3);
        EXPECT_EQ(one(op, {nan, 3}, {std::nan(""), 8}).index, 3);
    }
}

TEST(LocatedKernels, the_padding_of_results_is_zero) {
    Bytes a(16, std::byte{0xff});
    Bytes b(16, std::byte{0xff});
    a[0] = std::byte{1};
    b[0] = std::byte{2};
    Bytes want(16, std::byte{0xff});
    for (std::size_t i = 0; i < 8; ++i) want[i] = std::byte{0};
    want[0] = std::byte{2};
    EXPECT_EQ(folded(DType::located_u8, ReduceOp::max_location, a, b), want);
}

}  // namespace
}  // namespace nexar::compute
