#include <cstdint>

#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

template <class T>
void expect(ReduceOp op, T a, T b, T want) {
    EXPECT_EQ(folded<T>(op, {a}, {b}), std::vector<T>{want}) << name(op);
}

TEST(IntegerKernels, all_pairs_of_bytes_fold_as_defined) {
    Bytes a;
    Bytes b;
    for (unsigned i = 0; i < 0x10000; ++i) {
        a.push_back(static_cast<std::byte>(i >> 8));
        b.push_back(static_cast<std::byte>(i));
    }
    for (const DType dtype : {DType::i8, DType::u8}) {
        for (const ReduceOp op : kOps) {
            if (!makes_sense(dtype, op)) continue;
            const Bytes want = reference_fold(dtype, op, a, b);
            on_every_target(
                [&] { ASSERT_EQ(difference(dtype, op, folded(dtype, op, a, b), want), ""); });
        }
    }
}

TEST(IntegerKernels, sums_and_products_wrap) {
    on_every_target([] {
        expect<std::int8_t>(ReduceOp::sum, 127, 1, -128);
        expect<std::uint16_t>(ReduceOp::sum, 65535, 2, 1);
        expect<std::int32_t>(ReduceOp::product, 0x10001, 0x10001, 0x20001);
        expect<std::int64_t>(ReduceOp::product, INT64_MIN, -1, INT64_MIN);
        expect<std::uint64_t>(ReduceOp::product, 0x100000001, 0x300000001, 0x400000001);
        expect<std::uint64_t>(ReduceOp::sum, UINT64_MAX, 3, 2);
    });
}

TEST(IntegerKernels, min_and_max_respect_the_sign) {
    on_every_target([] {
        expect<std::int64_t>(ReduceOp::min, -1, 1, -1);
        expect<std::uint64_t>(ReduceOp::min, UINT64_MAX, 1, 1);
        expect<std::int64_t>(ReduceOp::max, INT64_MIN, 0, 0);
        expect<std::uint64_t>(ReduceOp::max, std::uint64_t{1} << 63, 0, std::uint64_t{1} << 63);
        expect<std::int16_t>(ReduceOp::max, -32768, 32767, 32767);
        expect<std::uint8_t>(ReduceOp::min, 200, 100, 100);
    });
}

TEST(IntegerKernels, logical_operators_treat_nonzero_as_true_and_return_one) {
    on_every_target([] {
        expect<std::uint32_t>(ReduceOp::logical_and, 0x80000000, 2, 1);
        expect<std::uint32_t>(ReduceOp::logical_and, 4, 0, 0);
        expect<std::int64_t>(ReduceOp::logical_or, 0, INT64_MIN, 1);
        expect<std::int64_t>(ReduceOp::logical_or, 0, 0, 0);
        expect<std::int16_t>(ReduceOp::logical_xor, 256, -1, 0);
        expect<std::int16_t>(ReduceOp::logical_xor, 256, 0, 1);
    });
}

}  // namespace
}  // namespace nexar::compute
