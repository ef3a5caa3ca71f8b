#include "support/collective_data.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "compute/reduce.hpp"

namespace nexar::testing {
namespace {

constexpr std::size_t kWorld = 3;
constexpr std::size_t kCount = 500;

template <class T>
class CollectiveData : public ::testing::Test {};

TYPED_TEST_SUITE(CollectiveData, AllElements);

template <class T>
std::vector<T> folded_by_kernels(const compute::Reducer& reducer, const PerRank<T>& in,
                                 std::span<const std::size_t> order) {
    std::vector<T> result = in[order[0]];
    auto* const out = reinterpret_cast<std::byte*>(result.data());
    for (const std::size_t rank : order.subspan(1)) {
        reducer.fold(out, out, reinterpret_cast<const std::byte*>(in[rank].data()), kCount);
    }
    reducer.finish(out, kCount, kWorld);
    return result;
}

TYPED_TEST(CollectiveData, kernels_fold_it_to_the_same_result_in_any_order) {
    for (const ReduceOp op : kReduceOps) {
        SCOPED_TRACE(std::string(name(op)));
        const auto reducer = compute::reducer_for(dtype_of<TypeParam>, op);
        ASSERT_EQ(reducer.has_value(), makes_sense(dtype_of<TypeParam>, op));
        if (!reducer) continue;
        const auto in = inputs<TypeParam>(values_for(op), 1, kWorld, kCount);
        for (const std::vector<std::size_t>& order :
             {std::vector<std::size_t>{0, 1, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}) {
            EXPECT_TRUE(same(0, folded_by_kernels(*reducer, in, order), folded(op, in)));
        }
    }
}

TYPED_TEST(CollectiveData, differs_between_ranks_seeds_and_result_buffers) {
    const auto in = inputs<TypeParam>(Values::distinct, 1, 2, 50);
    const auto other = inputs<TypeParam>(Values::distinct, 2, 2, 50);
    EXPECT_FALSE(same(0, in[0], in[1]));
    EXPECT_FALSE(same(0, in[0], other[0]));
    EXPECT_FALSE(same(0, in[0], room<TypeParam>(1, 50)[0]));
    EXPECT_FALSE(same(0, in[0], std::vector<TypeParam>(50, in[0][0])));
}

TEST(Difference, names_rank_element_and_both_values) {
    const std::vector<float> got{1, 2.5F};
    const std::vector<float> want{1, -3};
    EXPECT_STREQ(same(4, got, want).message(), "rank 4, element 1 of 2: got 2.5, wanted -3");
    EXPECT_FALSE(same(4, got, std::vector<float>{1}));
    EXPECT_TRUE(same(4, got, got));
}

}  // namespace
}  // namespace nexar::testing
