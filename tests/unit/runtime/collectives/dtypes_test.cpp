// Every element type with every operator that supports it.

#include <gtest/gtest.h>

#include <cmath>
#include <nexar/nexar.hpp>
#include <span>
#include <string>
#include <vector>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

constexpr std::size_t kDtypeWorld = 3;

template <class T>
class EveryType : public ::testing::Test {};

struct TypeName {
    template <class T>
    static std::string GetName(int /*index*/) {  // NOLINT(readability-identifier-naming)
        return std::string(name(dtype_of<T>));
    }
};

TYPED_TEST_SUITE(EveryType, AllElements, TypeName);

TYPED_TEST(EveryType, is_all_reduced_by_every_operator_that_supports_it) {
    auto ranks = fresh_ranks(kDtypeWorld);
    for (const ReduceOp op : kReduceOps) {
        if (!makes_sense(dtype_of<TypeParam>, op)) continue;
        for (const std::size_t count : {1U, 257U}) {
            SCOPED_TRACE(std::string(name(op)) + " x " + std::to_string(count));
            const auto in = inputs<TypeParam>(values_for(op), 71, kDtypeWorld, count);
            const auto want = folded(op, in);
            auto out = room<TypeParam>(kDtypeWorld, count);
            run(ranks, [&](Communicator& c, std::size_t rank) {
                return c.all_reduce(std::span(in[rank]), std::span(out[rank]), Builtin{op});
            });
            expect_everywhere(out, want);
            auto values = in;
            run(ranks, [&](Communicator& c, std::size_t rank) {
                return c.all_reduce(buffer(values[rank]), op);
            });
            expect_everywhere(values, want);
        }
    }
}

TYPED_TEST(EveryType, is_refused_locally_with_any_other_operator) {
    auto ranks = fresh_ranks(kDtypeWorld);
    for (const ReduceOp op : kReduceOps) {
        if (makes_sense(dtype_of<TypeParam>, op)) continue;
        std::vector<TypeParam> values(3);
        try {
            auto work = ranks[1].all_reduce(std::span(values), Builtin{op});
            ADD_FAILURE() << name(op);
            work.cancel();
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), Errc::unsupported) << error.what();
        }
    }
    expect_usable(ranks);
}

TYPED_TEST(EveryType, is_moved_unchanged) {
    auto ranks = fresh_ranks(kDtypeWorld);
    const auto in = inputs<TypeParam>(Values::distinct, 72, kDtypeWorld, 101);
    auto gathered = room<TypeParam>(kDtypeWorld, 101 * kDtypeWorld);
    run(ranks, [&](Communicator& c, std::size_t rank) {
        return c.all_gather(std::span(in[rank]), std::span(gathered[rank]));
    });
    expect_everywhere(gathered, joined(in));
    auto values = in;
    run(ranks,
        [&](Communicator& c, std::size_t rank) { return c.broadcast(std::span(values[rank]), 2); });
    expect_everywhere(values, in[2]);
}

TEST(Average, divides_once_in_every_operation) {
    auto ranks = fresh_ranks(kDtypeWorld);
    const auto in = inputs<std::int32_t>(Values::distinct, 73, kDtypeWorld, 30);
    const auto want = folded(ReduceOp::average, in);
    auto reduced = room<std::int32_t>(1, 30).front();
    run(ranks, [&](Communicator& c, std::size_t rank) {
        const auto to = rank == 1 ? std::span(reduced) : std::span<std::int32_t>();
        return c.reduce(std::span(in[rank]), to, average, 1);
    });
    EXPECT_TRUE(same(1, reduced, want));
    auto chunks = room<std::int32_t>(kDtypeWorld, 10);
    run(ranks, [&](Communicator& c, std::size_t rank) {
        return c.reduce_scatter(std::span(in[rank]), std::span(chunks[rank]), average);
    });
    EXPECT_EQ(joined(chunks), want);
}

TEST(Average, equals_the_value_of_a_single_rank) {
    auto ranks = fresh_ranks(1);
    auto values = inputs<float>(Values::fractions, 74, 1, 100);
    const auto want = values[0];
    run(ranks,
        [&](Communicator& c, std::size_t) { return c.all_reduce(std::span(values[0]), average); });
    EXPECT_TRUE(same(0, values[0], want));
}

template <class T>
class Fractions : public ::testing::Test {};

using RealTypes = ::testing::Types<float16, bfloat16, float, double>;
TYPED_TEST_SUITE(Fractions, RealTypes, TypeName);

// In any order, each of the world - 1 additions rounds once, by at most half a unit in the last
// place of a partial sum below `world`.
TYPED_TEST(Fractions, are_summed_within_the_rounding_error_of_each_addition) {
    for (const std::size_t world : {2U, 3U, 5U, 8U}) {
        for (const std::size_t count : {7U, 10'000U}) {
            SCOPED_TRACE(std::to_string(world) + " x " + std::to_string(count));
            auto ranks = fresh_ranks(static_cast<int>(world));
            auto values = inputs<TypeParam>(Values::fractions, 75, world, count);
            std::vector<double> want(count);
            for (const auto& of_rank : values) {
                for (std::size_t i = 0; i < count; ++i) want[i] += numbers::to_double(of_rank[i]);
            }
            run(ranks, [&](Communicator& c, std::size_t rank) {
                return c.all_reduce(std::span(values[rank]), sum);
            });
            const double unit = std::ldexp(1.0, -numbers::exact_bits<TypeParam>());
            const double most = static_cast<double>(world * world) * unit;
            for (std::size_t rank = 0; rank < world; ++rank) {
                for (std::size_t i = 0; i < count; ++i) {
                    ASSERT_NEAR(numbers::to_double(values[rank][i]), want[i], most)
                        << "rank " << rank << ", element " << i;
                }
            }
        }
    }
}

TYPED_TEST(Fractions, have_the_same_sum_on_every_rank) {
    for (const std::size_t world : {2U, 3U, 5U, 8U}) {
        for (const std::size_t count : {1U, 7U, 10'000U}) {
            auto ranks = fresh_ranks(static_cast<int>(world));
            auto values = inputs<TypeParam>(Values::fractions, 76, world, count);
            run(ranks, [&](Communicator& c, std::size_t rank) {
                return c.all_reduce(std::span(values[rank]), sum);
            });
            expect_everywhere(values, values[0]);
        }
    }
}

}  // namespace
}  // namespace nexar::testing
