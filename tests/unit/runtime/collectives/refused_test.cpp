// An invalid call is refused locally: nothing is sent, no other rank notices, and the next
// collective works.

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <limits>
#include <nexar/nexar.hpp>
#include <span>
#include <vector>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

using Counts = std::vector<std::size_t>;

class InvalidCall : public ::testing::Test {
protected:
    InvalidCall() : ranks_(fresh_ranks(3)), one_(ranks_[1]) {}

    /// All ranks continue as if the call had never been made.
    void TearDown() override { expect_usable(ranks_); }

    static void expect_refused(const std::function<Work<>()>& call,
                               Errc code = Errc::invalid_argument) {
        try {
            Work<> work = call();
            ADD_FAILURE() << "the call was started";
            work.cancel();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), code) << error.what();
            EXPECT_FALSE(error.cause().empty());
        }
    }

    std::span<float> floats(std::size_t from, std::size_t count) {
        return std::span(memory_).subspan(from, count);
    }

    std::vector<Communicator> ranks_;
    Communicator& one_;
    std::vector<float> memory_ = elements<float>(Values::distinct, 250, 0, 100);
};

TEST_F(InvalidCall, partially_overlapping_buffers_are_refused) {
    expect_refused([&] { return one_.all_reduce(floats(0, 10), floats(1, 10), sum); });
    expect_refused([&] { return one_.all_reduce(floats(9, 10), floats(0, 10), sum); });
    expect_refused([&] { return one_.scan(floats(0, 10), floats(9, 10), sum); });
    expect_refused([&] { return one_.exclusive_scan(floats(3, 10), floats(0, 10), sum); });
    expect_refused([&] { return one_.reduce(floats(0, 10), floats(5, 10), sum, 1); });
    expect_refused([&] { return one_.all_to_all(floats(0, 9), floats(3, 9)); });
}

TEST_F(InvalidCall, an_input_in_the_wrong_place_of_the_output_is_refused) {
    expect_refused([&] { return one_.all_gather(floats(0, 5), floats(0, 15)); });
    expect_refused([&] { return one_.all_gather(floats(6, 5), floats(0, 15)); });
    expect_refused([&] { return one_.gather(floats(10, 5), floats(0, 15), 1); });
    expect_refused([&] { return one_.scatter(floats(0, 15), floats(0, 5), 1); });
    expect_refused([&] { return one_.reduce_scatter(floats(0, 15), floats(10, 5), sum); });
    const Counts counts{2, 3, 4};
    expect_refused([&] { return one_.all_gather_v(floats(1, 3), floats(0, 9), counts); });
    expect_refused([&] { return one_.reduce_scatter_v(floats(0, 9), floats(3, 3), counts, sum); });
}

TEST_F(InvalidCall, overlapping_buckets_are_refused) {
    const std::vector<std::span<float>> buckets{floats(0, 10), floats(20, 5), floats(9, 2)};
    expect_refused(
        [&] { return one_.all_reduce(std::span<const std::span<float>>(buckets), sum); });
}

TEST_F(InvalidCall, buckets_of_different_types_are_refused) {
    std::vector<std::int32_t> others(4);
    expect_refused([&] {
        return one_.all_reduce_buckets({buffer(floats(0, 4)), buffer(std::span(others))}, {});
    });
}

TEST_F(InvalidCall, mismatched_sizes_are_refused) {
    expect_refused([&] { return one_.all_reduce(floats(0, 10), floats(20, 11), sum); });
    expect_refused([&] { return one_.reduce(floats(0, 10), floats(20, 9), sum, 1); });
    expect_refused([&] { return one_.scan(floats(0, 10), floats(20, 0), sum); });
    expect_refused([&] { return one_.all_gather(floats(0, 5), floats(20, 14)); });
    expect_refused([&] { return one_.gather(floats(0, 5), floats(20, 16), 1); });
    expect_refused([&] { return one_.scatter(floats(0, 14), floats(20, 5), 1); });
    expect_refused([&] { return one_.reduce_scatter(floats(0, 16), floats(20, 5), sum); });
    expect_refused([&] { return one_.all_to_all(floats(0, 9), floats(20, 12)); });
    expect_refused([&] { return one_.all_to_all(floats(0, 10), floats(20, 10)); });
}

TEST_F(InvalidCall, counts_that_do_not_match_the_buffers_or_the_world_are_refused) {
    const Counts two{3, 3};
    const Counts four{3, 3, 3, 3};
    const Counts three{3, 4, 5};
    for (const Counts& wrong : {two, four, Counts{}}) {
        expect_refused([&] { return one_.all_gather_v(floats(0, 3), floats(20, 6), wrong); });
        expect_refused([&] { return one_.gather_v(floats(0, 3), floats(20, 6), wrong, 1); });
        expect_refused([&] { return one_.scatter_v(floats(0, 6), floats(20, 3), wrong, 1); });
        expect_refused(
            [&] { return one_.reduce_scatter_v(floats(0, 6), floats(20, 3), wrong, sum); });
        expect_refused(
            [&] { return one_.all_to_all_v(floats(0, 12), three, floats(20, 6), wrong); });
        expect_refused(
            [&] { return one_.all_to_all_v(floats(0, 6), wrong, floats(20, 12), three); });
    }
    expect_refused([&] { return one_.all_gather_v(floats(0, 3), floats(20, 12), three); });
    expect_refused([&] { return one_.all_gather_v(floats(0, 4), floats(20, 11), three); });
    expect_refused([&] { return one_.gather_v(floats(0, 5), floats(20, 12), three, 1); });
    expect_refused([&] { return one_.scatter_v(floats(0, 13), floats(20, 4), three, 1); });
    expect_refused([&] { return one_.reduce_scatter_v(floats(0, 12), floats(20, 5), three, sum); });
    expect_refused([&] { return one_.all_to_all_v(floats(0, 12), three, floats(20, 11), three); });
}

TEST_F(InvalidCall, counts_whose_sum_overflows_are_refused) {
    constexpr std::size_t kHalf = std::numeric_limits<std::size_t>::max() / 2 + 1;
    const Counts counts{kHalf, 4, kHalf};
    expect_refused([&] { return one_.all_gather_v(floats(0, 4), floats(20, 4), counts); });
}

TEST_F(InvalidCall, a_root_that_is_not_a_rank_is_refused) {
    for (const int root : {-1, 3, std::numeric_limits<int>::max()}) {
        expect_refused([&] { return one_.broadcast(floats(0, 3), root); });
        expect_refused([&] { return one_.reduce(floats(0, 3), floats(20, 3), sum, root); });
        expect_refused([&] { return one_.gather(floats(0, 3), floats(20, 9), root); });
        expect_refused([&] { return one_.scatter(floats(0, 9), floats(20, 3), root); });
    }
}

TEST_F(InvalidCall, operators_that_do_not_support_the_type_are_refused) {
    constexpr auto kCode = Errc::unsupported;
    const auto a = floats(0, 3);
    const auto b = floats(20, 3);
    expect_refused([&] { return one_.all_reduce(a, min_location); }, kCode);
    expect_refused([&] { return one_.all_reduce(a, b, bit_and); }, kCode);
    expect_refused([&] { return one_.reduce(a, b, logical_or, 0); }, kCode);
    expect_refused([&] { return one_.scan(a, b, max_location); }, kCode);
    expect_refused([&] { return one_.exclusive_scan(a, b, bit_xor); }, kCode);
    expect_refused([&] { return one_.reduce_scatter(floats(40, 9), b, bit_or); }, kCode);
    std::vector<Located<float>> located(2);
    expect_refused([&] { return one_.all_reduce(std::span(located), sum); }, kCode);
}

TEST_F(InvalidCall, different_or_invalid_types_are_refused) {
    std::vector<std::int32_t> ints(3);
    expect_refused(
        [&] { return one_.all_reduce(const_buffer(floats(0, 3)), buffer(std::span(ints)), {}); });
    expect_refused([&] {
        std::vector<std::int32_t> nine(9);
        return one_.all_gather(const_buffer(floats(0, 3)), buffer(std::span(nine)));
    });
    Buffer strange = buffer(floats(0, 3));
    for (const int number : {0, 16, 32, 45, 255}) {
        strange.dtype = static_cast<DType>(number);
        expect_refused([&] { return one_.broadcast(strange, 0); });
    }
    strange.dtype = DType::opaque;
    strange.opaque_size = 0;
    expect_refused([&] { return one_.broadcast(strange, 0); });
}

TEST_F(InvalidCall, an_invalid_operator_is_refused) {
    for (const int number : {0, 14, 255}) {
        const Builtin strange{static_cast<ReduceOp>(number)};
        try {
            Work<> work = one_.all_reduce(floats(0, 3), strange);
            ADD_FAILURE() << number;
            work.cancel();
        } catch (const Error& error) {
            EXPECT_EQ(remedy(error.code()), Remedy::own_fault) << error.what();
        }
    }
}

TEST_F(InvalidCall, null_pointers_with_elements_are_refused) {
    float* const nowhere = nullptr;
    const std::span<float> null(nowhere, 3);
    const std::span<float> null9(nowhere, 9);
    expect_refused([&] { return one_.all_reduce(null, sum); });
    expect_refused([&] { return one_.all_reduce(floats(0, 3), null, sum); });
    expect_refused([&] { return one_.all_reduce(null, floats(0, 3), sum); });
    expect_refused([&] { return one_.reduce(null, std::span<float>(), sum, 0); });
    expect_refused([&] { return one_.broadcast(null, 0); });
    expect_refused([&] { return one_.all_gather(floats(0, 3), null9); });
    expect_refused([&] { return one_.scatter(null9, floats(0, 3), 1); });
    expect_refused([&] { return one_.all_to_all(null9, floats(0, 9)); });
    const std::vector<std::span<float>> buckets{floats(0, 3), null};
    expect_refused(
        [&] { return one_.all_reduce(std::span<const std::span<float>>(buckets), sum); });
}

TEST_F(InvalidCall, an_impossible_number_of_elements_is_refused) {
    Buffer huge = buffer(floats(0, 3));
    huge.count = std::numeric_limits<std::size_t>::max() / 2;
    expect_refused([&] { return one_.all_reduce(huge, {}); });
    expect_refused([&] { return one_.broadcast(huge, 0); });
}

TEST_F(InvalidCall, the_error_names_the_operation_and_the_wrong_argument) {
    try {
        one_.broadcast(floats(0, 3), 7).cancel();
        ADD_FAILURE();
    } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("broadcast"), std::string::npos) << text;
        EXPECT_NE(text.find('7'), std::string::npos) << text;
        EXPECT_NE(text.find('3'), std::string::npos) << text;
    }
}

TEST_F(InvalidCall, buffers_are_left_unchanged) {
    const auto before = memory_;
    expect_refused([&] { return one_.all_reduce(floats(0, 10), floats(1, 10), sum); });
    expect_refused([&] { return one_.all_reduce(floats(0, 10), floats(20, 11), sum); });
    EXPECT_TRUE(same(1, memory_, before));
}

}  // namespace
}  // namespace nexar::testing
