#include "compute/user_op.hpp"

#include <memory>

#include "unit/compute/support.hpp"

namespace nexar::compute {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): the support of these tests

template <class T>
std::vector<T> folded_by(const Reducer& reducer, const std::vector<T>& a, const std::vector<T>& b) {
    Bytes out(a.size() * sizeof(T));
    const Bytes left = bytes_of(a);
    const Bytes right = bytes_of(b);
    reducer.fold(out.data(), left.data(), right.data(), a.size());
    return elements_of<T>(out);
}

TEST(UserOp, keeps_the_order_of_operands) {
    const Reducer minus = reducer_of<int>([](int a, int b) { return a - b; }, false);
    EXPECT_FALSE(minus.commutative());
    EXPECT_EQ(minus.dtype(), DType::i32);
    EXPECT_EQ(minus.element_size(), 4U);
    EXPECT_EQ(folded_by<int>(minus, {10, 20, 7}, {1, 2, 30}), (std::vector<int>{9, 18, -23}));
}

TEST(UserOp, folds_in_place_on_either_side_and_at_any_alignment) {
    const Reducer minus =
        reducer_of<std::int64_t>([](std::int64_t a, std::int64_t b) { return a - b; }, false);
    for (std::size_t offset = 0; offset < 8; ++offset) {
        std::vector<std::int64_t> a(50);
        std::vector<std::int64_t> b(50);
        for (std::size_t i = 0; i < a.size(); ++i) {
            a[i] = static_cast<std::int64_t>(i * i);
            b[i] = static_cast<std::int64_t>(3 * i);
        }
        Bytes left(8 + 400);
        Bytes right(8 + 400);
        const auto refill = [&] {
            std::memcpy(left.data() + offset, a.data(), 400);
            std::memcpy(right.data() + offset, b.data(), 400);
        };
        const auto expect = [&](const std::byte* result) {
            for (std::size_t i = 0; i < a.size(); ++i) {
                std::int64_t x = 0;
                std::memcpy(&x, result + 8 * i, 8);
                ASSERT_EQ(x, a[i] - b[i]);
            }
        };
        refill();
        minus.fold(left.data() + offset, left.data() + offset, right.data() + offset, 50);
        expect(left.data() + offset);
        refill();
        minus.fold(right.data() + offset, left.data() + offset, right.data() + offset, 50);
        expect(right.data() + offset);
    }
}

TEST(UserOp, copies_share_the_state_and_the_last_one_frees_it) {
    const auto factor = std::make_shared<float>(3.0F);
    {
        const Reducer scaled_sum =
            reducer_of<float>([factor](float a, float b) { return a + *factor * b; }, false);
        EXPECT_EQ(factor.use_count(), 2);
        const Reducer copy = scaled_sum;  // NOLINT(performance-unnecessary-copy-initialization)
        EXPECT_EQ(factor.use_count(), 2);
        EXPECT_EQ(folded_by<float>(copy, {1}, {2}), std::vector<float>{7});
    }
    EXPECT_EQ(factor.use_count(), 1);
}

TEST(UserOp, accepts_every_kind_of_element) {
    using Entry = Located<float>;
    const Reducer last =
        reducer_of<Entry>([](Entry a, Entry b) { return a.index > b.index ? a : b; }, true);
    EXPECT_TRUE(last.commutative());
    EXPECT_EQ(folded_by<Entry>(last, {{1, 5}}, {{2, 4}}), (std::vector<Entry>{{1, 5}}));
    const Reducer half = reducer_of<bfloat16>(
        [](bfloat16 a, bfloat16 b) {
            return bfloat16(static_cast<float>(a) * 2 + static_cast<float>(b));
        },
        false);
    EXPECT_EQ(folded_by<bfloat16>(half, {bfloat16(1.5F)}, {bfloat16(4.0F)})[0], bfloat16(7.0F));
}

TEST(UserOp, finish_does_nothing) {
    const Reducer minus = reducer_of<int>([](int a, int b) { return a - b; }, false);
    Bytes data(40, std::byte{9});
    minus.finish(data.data(), 10, 4);
    EXPECT_EQ(data, Bytes(40, std::byte{9}));
}

TEST(UserOpDeathTest, a_partial_overlap_is_a_bug) {
    const Reducer minus = reducer_of<int>([](int a, int b) { return a - b; }, false);
    Bytes memory(100);
    EXPECT_DEATH(minus.fold(memory.data() + 4, memory.data(), memory.data() + 60, 5),
                 "overlap neither");
}

}  // namespace
}  // namespace nexar::compute
