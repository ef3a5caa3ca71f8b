// Calls that make no sense are refused where they are made: nothing is sent, no other rank learns
// of them, and the next collective works.

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

class Refused : public ::testing::Test {
protected:
    Refused() : ranks_(fresh_ranks(3)), one_(ranks_[1]) {}

    /// All ranks go on as if nothing had been called.
    void TearDown() override { expect_usable(ranks_); }

    static void expect_refused(const std::function<Work<>()>& call,
                               Errc code = Errc::invalid_argument) {
        try {
            Work<> work = call();
            ADD_FAILURE() << "was started";
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

TEST_F(Refused, buffers_that_overlap_in_part) {
    expect_refused([&] { return one_.all_reduce(floats(0, 10), floats(1, 10), sum); });
    expect_refused([&] { return one_.all_reduce(floats(9, 10), floats(0, 10), sum); });
    expect_refused([&] { return one_.scan(floats(0, 10), floats(9, 10), sum); });
    expect_refused([&] { return one_.exclusive_scan(floats(3, 10), floats(0, 10), sum); });
    expect_refused([&] { return one_.reduce(floats(0, 10), floats(5, 10), sum, 1); });
    expect_refused([&] { return one_.all_to_all(floats(0, 9), floats(3, 9)); });
}

TEST_F(Refused, an_input_that_stands_at_another_place_of_the_output_than_its_own) {
    expect_refused([&] { return one_.all_gather(floats(0, 5), floats(0, 15)); });
    expect_refused([&] { return one_.all_gather(floats(6, 5), floats(0, 15)); });
    expect_refused([&] { return one_.gather(floats(10, 5), floats(0, 15), 1); });
    expect_refused([&] { return one_.scatter(floats(0, 15), floats(0, 5), 1); });
    expect_refused([&] { return one_.reduce_scatter(floats(0, 15), floats(10, 5), sum); });
    const Counts counts{2, 3, 4};
    expect_refused([&] { return one_.all_gather_v(floats(1, 3), floats(0, 9), counts); });
    expect_refused([&] { return one_.reduce_scatter_v(floats(0, 9), floats(3, 3), counts, sum); });
}

TEST_F(Refused, buckets_that_overlap) {
    const std::vector<std::span<float>> buckets{floats(0, 10), floats(20, 5), floats(9, 2)};
    expect_refused(
        [&] { return one_.all_reduce(std::span<const std::span<float>>(buckets), sum); });
}

TEST_F(Refused, buckets_of_different_types) {
    std::vector<std::int32_t> others(4);
    expect_refused([&] {
        return one_.all_reduce_buckets({buffer(floats(0, 4)), buffer(std::span(others))}, {});
    });
}

TEST_F(Refused, sizes_that_do_not_fit_each_other) {
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

TEST_F(Refused, counts_that_do_not_fit_the_buffers_or_the_world) {
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

TEST_F(Refused, counts_whose_sum_overflows) {
    constexpr std::size_t kHalf = std::numeric_limits<std::size_t>::max() / 2 + 1;
    const Counts counts{kHalf, 4, kHalf};
    expect_refused([&] { return one_.all_gather_v(floats(0, 4), floats(20, 4), counts); });
}

TEST_F(Refused, a_root_that_is_no_rank) {
    for (const int root : {-1, 3, std::numeric_limits<int>::max()}) {
        expect_refused([&] { return one_.broadcast(floats(0, 3), root); });
        expect_refused([&] { return one_.reduce(floats(0, 3), floats(20, 3), sum, root); });
        expect_refused([&] { return one_.gather(floats(0, 3), floats(20, 9), root); });
        expect_refused([&] { return one_.scatter(floats(0, 9), floats(20, 3), root); });
    }
}

TEST_F(Refused, operators_that_make_no_sense_for_the_type) {
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

TEST_F(Refused, types_that_differ_or_are_none) {
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

TEST_F(Refused, an_operator_that_is_none) {
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

TEST_F(Refused, elements_that_are_nowhere) {
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

TEST_F(Refused, more_elements_than_there_can_be) {
    Buffer huge = buffer(floats(0, 3));
    huge.count = std::numeric_limits<std::size_t>::max() / 2;
    expect_refused([&] { return one_.all_reduce(huge, {}); });
    expect_refused([&] { return one_.broadcast(huge, 0); });
}

TEST_F(Refused, the_text_says_what_was_called) {
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

TEST_F(Refused, buffers_are_left_as_they_were) {
    const auto before = memory_;
    expect_refused([&] { return one_.all_reduce(floats(0, 10), floats(1, 10), sum); });
    expect_refused([&] { return one_.all_reduce(floats(0, 10), floats(20, 11), sum); });
    EXPECT_TRUE(same(1, memory_, before));
}

}  // namespace
}  // namespace nexar::testing
