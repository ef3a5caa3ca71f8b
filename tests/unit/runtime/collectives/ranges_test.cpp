// Collectives over every kind of range, and over elements that are not numbers.

#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "unit/runtime/collectives/values.hpp"

namespace nexar::testing {
namespace {

class Ranges : public WorldTest {
protected:
    /// Element `i` of rank `rank`.
    static Extent extent(std::size_t rank, std::size_t i) {
        const auto low = static_cast<std::int64_t>(1000 * rank + 7 * i);
        return {low, low + 3, static_cast<char>('a' + rank % 26)};
    }
    static std::vector<Extent> extents(std::size_t rank, std::size_t count) {
        std::vector<Extent> all(count);
        for (std::size_t i = 0; i < count; ++i) all[i] = extent(rank, i);
        return all;
    }
};

INSTANTIATE_TEST_SUITE_P(Worlds, Ranges, ::testing::Values(1, 2, 3, 5), world_name);

TEST_P(Ranges, every_kind_of_contiguous_range_is_accepted) {
    const auto total = static_cast<int>(world() * (world() + 1) / 2);
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t) {
        std::vector<int> vector(3, c.rank() + 1);
        c.all_reduce(vector, sum).wait();
        EXPECT_EQ(vector, std::vector<int>(3, total));
        std::array<int, 2> array{c.rank() + 1, c.rank() + 1};
        c.all_reduce(array, sum).wait();
        EXPECT_EQ(array[1], total);
        int plain[2] = {c.rank() + 1, 5};
        c.all_reduce(plain, nexar::max).wait();
        EXPECT_EQ(plain[0], c.size());
        const std::vector<int> in(3, c.rank() + 1);
        c.all_reduce(in, std::span(vector), product).wait();
        EXPECT_EQ(vector[2], std::tgamma(c.size() + 1));
    });
}

TEST_P(Ranges, may_be_const_where_they_are_read) {
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t) {
        const std::vector<double> in{1.0 * c.rank(), 2.0};
        std::vector<double> all(2 * world());
        c.all_gather(in, all).wait();
        EXPECT_EQ(all[2 * world() - 2], c.size() - 1.0);
        std::array<double, 2> own{};
        c.scatter(std::span<const double>(all), own, 0).wait();
        EXPECT_EQ(own, (std::array{1.0 * c.rank(), 2.0}));
        c.gather(own, all, c.size() - 1).wait();
        c.gather(std::as_const(own), std::span<double>(all), 0).wait();
        std::vector<double> folded(2);
        c.reduce(in, folded, sum, 0).wait();
        if (c.rank() == 0) {
            EXPECT_EQ(folded[1], 2.0 * c.size());
        }
        c.scan(in, folded, sum).wait();
        EXPECT_EQ(folded[1], 2.0 * (c.rank() + 1));
        c.exclusive_scan(in, folded, sum).wait();
        if (c.rank() > 0) {
            EXPECT_EQ(folded[1], 2.0 * c.rank());
        }
        c.reduce_scatter(all, own, nexar::max).wait();
    });
    expect_usable(ranks_);
}

TEST_P(Ranges, may_be_left_out_where_a_rank_does_not_use_them) {
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t) {
        const bool root = c.rank() == c.size() - 1;
        const std::array<int, 2> in{c.rank(), -c.rank()};
        std::vector<int> all(root ? in.size() * world() : 0);
        std::array<int, 2> back{};
        if (root) {
            c.gather(in, all, c.rank()).wait();
            c.scatter(all, back, c.rank()).wait();
            c.reduce(in, back, sum, c.rank()).wait();
            EXPECT_EQ(back[0], c.size() * (c.size() - 1) / 2);
        } else {
            c.gather(in, {}, c.size() - 1).wait();
            c.scatter({}, back, c.size() - 1).wait();
            EXPECT_EQ(back, in);
            c.reduce(in, {}, sum, c.size() - 1).wait();
        }
    });
}

TEST_P(Ranges, bytes_are_broadcast_unchanged) {
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t) {
        std::string text = c.rank() == 0 ? "where to meet" : std::string(13, '?');
        c.broadcast(text, 0).wait();
        EXPECT_EQ(text, "where to meet");
        std::vector<std::int64_t> numbers(5, c.rank() == 0 ? 42 : 0);
        c.broadcast(std::as_writable_bytes(std::span(numbers)), 0).wait();
        EXPECT_EQ(numbers.back(), 42);
        std::array<bool, 4> flags{c.rank() == 0, false, c.rank() == 0, false};
        c.broadcast(flags, 0).wait();
        EXPECT_EQ(flags, (std::array{true, false, true, false}));
    });
}

TEST_P(Ranges, structs_are_moved_by_every_operation) {
    for (const std::size_t count : {std::size_t{1}, std::size_t{7}, std::size_t{30'000}}) {
        SCOPED_TRACE("count " + std::to_string(count));
        on_every_rank(ranks_, [&](const Communicator& c, std::size_t rank) {
            auto own = extents(rank, count);
            c.broadcast(own, 0).wait();
            EXPECT_EQ(own, extents(0, count));
            own = extents(rank, count);
            std::vector<Extent> all(count * world());
            c.all_gather(own, all).wait();
            for (std::size_t from = 0; from < world(); ++from) {
                EXPECT_EQ(all[from * count + count - 1], extent(from, count - 1));
            }
            std::vector<Extent> exchanged(all.size());
            c.all_to_all(all, exchanged).wait();
            EXPECT_EQ(exchanged.back(), extent(rank, count - 1));
            const auto several =
                c.all_gather_v(std::span(own).first(rank + 1 < count ? rank + 1 : 1)).wait();
            EXPECT_EQ(several.chunk(c.rank()).front(), extent(rank, 0));
            EXPECT_EQ(several.counts.size(), world());
        });
        if (HasFailure()) return;
    }
}

TEST_P(Ranges, structs_are_folded_even_when_packets_split_them) {
    // Elements of 12, 24 and 1000 bytes, which packets split at arbitrary places.
    const auto check = [&]<class T>(std::size_t count, T /*type*/) {
        on_every_rank(ranks_, [&](const Communicator& c, std::size_t rank) {
            std::vector<T> values(count);
            for (std::size_t i = 0; i < count; ++i) {
                for (std::size_t j = 0; j < values[i].size(); ++j) {
                    values[i][j] = static_cast<int>(i * 31 + j + rank);
                }
            }
            const auto add = [](const T& a, const T& b) {
                T both;
                std::ranges::transform(a, b, both.begin(), std::plus<>{});
                return both;
            };
            c.all_reduce(values, custom(add, Commutes::yes)).wait();
            const auto size = static_cast<int>(world());
            const auto ranks = static_cast<int>(world() * (world() - 1) / 2);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < count; ++i) {
                for (std::size_t j = 0; j < values[i].size(); ++j) {
                    wrong += values[i][j] != size * static_cast<int>(i * 31 + j) + ranks ? 1U : 0U;
                }
            }
            EXPECT_EQ(wrong, 0U);
        });
    };
    check(50'001, std::array<int, 3>{});
    check(20'000, std::array<int, 6>{});
    check(700, std::array<int, 250>{});
}

TEST_P(Ranges, ranges_of_ranges_are_treated_as_buckets) {
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t) {
        std::vector<std::vector<float>> layers{{1, 2, 3}, {}, {4}};
        for (auto& layer : layers) {
            for (float& weight : layer) weight *= static_cast<float>(c.rank() + 1);
        }
        c.all_reduce(layers, sum).wait();
        const auto total = static_cast<float>(c.size() * (c.size() + 1)) / 2;
        EXPECT_EQ(layers[0][2], 3 * total);
        EXPECT_EQ(layers[2][0], 4 * total);
        c.all_reduce(std::vector<std::span<float>>{layers[0], layers[2]}, average).wait();
        EXPECT_EQ(layers[2][0], 4 * total);
        const std::array<std::span<float>, 2> views{layers[0], layers[2]};
        c.all_reduce(views, nexar::max).wait();
        EXPECT_EQ(layers[0][0], total);
    });
}

TEST_P(Ranges, are_refused_with_an_operator_for_another_type) {
    std::vector<float> values(3);
    const auto add = Operator::of<int>([](int a, int b) { return a + b; });
    try {
        ranks_[0].all_reduce(buffer(values), add).wait();
        ADD_FAILURE() << "the call was started";
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::invalid_argument);
    }
    EXPECT_THROW(
        ranks_[0]
            .all_reduce(Buffer{.data = values.data(), .count = 3, .dtype = DType::opaque}, sum)
            .wait(),
        Error);
    EXPECT_THROW(
        ranks_[0]
            .all_reduce(
                Buffer{.data = values.data(), .count = 3, .dtype = DType::opaque, .opaque_size = 4},
                sum)
            .wait(),
        Error);
    expect_usable(ranks_);
}

}  // namespace
}  // namespace nexar::testing
