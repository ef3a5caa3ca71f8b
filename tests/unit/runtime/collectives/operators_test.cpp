// User operators, commutative ones and ones whose result depends on the order of ranks.

#include <gtest/gtest.h>

#include <memory>
#include <nexar/nexar.hpp>
#include <span>
#include <vector>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

/// The map x -> a * x + b modulo a prime, packed into one word.
struct Affine {
    static constexpr std::uint64_t kPrime = 2'147'483'647;

    std::uint64_t a;
    std::uint64_t b;

    static Affine of(std::uint64_t word) {
        return {(word >> 32U) % kPrime, (word & 0xffff'ffffU) % kPrime};
    }
    std::uint64_t word() const { return a << 32U | b; }
};

/// Applies `first`, then `second`. Associative but not commutative.
constexpr auto kComposed = [](std::uint64_t first, std::uint64_t second) {
    const Affine f = Affine::of(first);
    const Affine g = Affine::of(second);
    return Affine{.a = f.a * g.a % Affine::kPrime, .b = (g.a * f.b + g.b) % Affine::kPrime}.word();
};

PerRank<std::uint64_t> maps(std::uint64_t seed, std::size_t world, std::size_t count) {
    auto all = inputs<std::uint64_t>(Values::distinct, seed, world, count);
    for (auto& of_rank : all) {
        for (std::uint64_t& word : of_rank) word = Affine::of(word).word();
    }
    return all;
}

/// (1 + a) * (1 + b) - 1, modulo 2^64.
constexpr auto kGrowth = [](std::uint64_t a, std::uint64_t b) { return a + b + a * b; };

class UserOperator : public WorldTest {
protected:
    template <class Body>
    void for_sizes(Body body) {
        for (const std::size_t count : {1U, 3U, 100U, 9000U}) {
            SCOPED_TRACE("count " + std::to_string(count));
            body(count);
            if (HasFailure()) return;
        }
    }
    auto ordered(const PerRank<std::uint64_t>& in, std::size_t ranks) const {
        return folded_by(kComposed, in, ranks);
    }
};

INSTANTIATE_TEST_SUITE_P(In, UserOperator, ::testing::Values(1, 2, 3, 4, 5, 7, 8), world_name);

TEST(AffineMaps, compose_associatively_but_not_commutatively) {
    const auto m = maps(80, 3, 1);
    EXPECT_NE(kComposed(m[0][0], m[1][0]), kComposed(m[1][0], m[0][0]));
    EXPECT_EQ(kComposed(kComposed(m[0][0], m[1][0]), m[2][0]),
              kComposed(m[0][0], kComposed(m[1][0], m[2][0])));
}

TEST_P(UserOperator, non_commutative_all_reduce_follows_rank_order) {
    for_sizes([&](std::size_t count) {
        const auto in = maps(81, world(), count);
        auto out = room<std::uint64_t>(world(), count);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_reduce(std::span(in[rank]), std::span(out[rank]), kComposed);
        });
        expect_everywhere(out, ordered(in, world()));
        auto values = in;
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_reduce(std::span(values[rank]), custom(kComposed, Commutes::no));
        });
        expect_everywhere(values, ordered(in, world()));
    });
}

TEST_P(UserOperator, non_commutative_reduce_to_any_root_follows_rank_order) {
    for_sizes([&](std::size_t count) {
        for_every_root(count, [&](int root) {
            const auto in = maps(82, world(), count);
            auto out = room<std::uint64_t>(world(), count);
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                return c.reduce(std::span(in[rank]), std::span(out[rank]), kComposed, root);
            });
            const auto at = static_cast<std::size_t>(root);
            EXPECT_TRUE(same(at, out[at], ordered(in, world())));
        });
    });
}

TEST_P(UserOperator, non_commutative_scan_follows_rank_order) {
    for_sizes([&](std::size_t count) {
        const auto in = maps(83, world(), count);
        auto until = room<std::uint64_t>(world(), count);
        auto before = room<std::uint64_t>(world(), count);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.scan(std::span(in[rank]), std::span(until[rank]), kComposed);
        });
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.exclusive_scan(std::span(in[rank]), std::span(before[rank]), kComposed);
        });
        for (std::size_t rank = 0; rank < world(); ++rank) {
            EXPECT_TRUE(same(rank, until[rank], ordered(in, rank + 1)));
            if (rank > 0) {
                EXPECT_TRUE(same(rank, before[rank], ordered(in, rank)));
            }
        }
    });
}

TEST_P(UserOperator, non_commutative_reduce_scatter_follows_rank_order) {
    for_sizes([&](std::size_t count) {
        const auto in = maps(84, world(), count * world());
        auto out = room<std::uint64_t>(world(), count);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.reduce_scatter(std::span(in[rank]), std::span(out[rank]), kComposed);
        });
        const auto want = ordered(in, world());
        for (std::size_t rank = 0; rank < world(); ++rank) {
            EXPECT_TRUE(same(rank, out[rank], part(want, rank * count, count)));
        }
    });
}

TEST_P(UserOperator, non_commutative_reduce_scatter_v_follows_rank_order) {
    std::vector<std::size_t> counts(world());
    for (std::size_t rank = 0; rank < world(); ++rank) counts[rank] = rank * 37 % 101;
    std::size_t total = 0;
    PerRank<std::uint64_t> out;
    for (const std::size_t count : counts) {
        total += count;
        out.emplace_back(count);
    }
    const auto in = maps(85, world(), total);
    run(ranks_, [&](Communicator& c, std::size_t rank) {
        return c.reduce_scatter_v(std::span(in[rank]), std::span(out[rank]), counts, kComposed);
    });
    EXPECT_EQ(joined(out), ordered(in, world()));
}

TEST_P(UserOperator, commutative_reductions_fold_all_ranks) {
    for_sizes([&](std::size_t count) {
        const auto in = inputs<std::uint64_t>(Values::distinct, 86, world(), count);
        const auto want = folded_by(kGrowth, in, world());
        auto out = room<std::uint64_t>(world(), count);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_reduce(std::span(in[rank]), std::span(out[rank]),
                                custom(kGrowth, Commutes::yes));
        });
        expect_everywhere(out, want);
        auto root = room<std::uint64_t>(1, count).front();
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            const auto to = rank == 0 ? std::span(root) : std::span<std::uint64_t>();
            return c.reduce(std::span(in[rank]), to, custom(kGrowth, Commutes::yes), 0);
        });
        EXPECT_TRUE(same(0, root, want));
    });
}

TEST_P(UserOperator, state_of_an_operator_lives_as_long_as_the_operation) {
    const auto in = inputs<std::int64_t>(Values::distinct, 87, world(), 3000);
    auto out = room<std::int64_t>(world(), 3000);
    run(ranks_, [&](Communicator& c, std::size_t rank) {
        const auto modulus = std::make_shared<const std::int64_t>(1'000'003);
        const auto op = [modulus](std::int64_t a, std::int64_t b) {
            return (a % *modulus + b % *modulus) % *modulus;
        };
        return c.all_reduce(std::span(in[rank]), std::span(out[rank]), custom(op, Commutes::yes));
    });
    expect_everywhere(out, out[0]);
    for (std::size_t i = 0; i < 3000 && world() > 1; ++i) {
        std::int64_t want = 0;
        for (const auto& of_rank : in) want = (want + of_rank[i] % 1'000'003) % 1'000'003;
        EXPECT_EQ((out[0][i] - want) % 1'000'003, 0) << i;
    }
}

TEST_P(UserOperator, folds_elements_of_two_words) {
    using Pair = Located<double>;  // a sum and a count, from which a mean could be computed
    PerRank<Pair> in(world());
    for (std::size_t rank = 0; rank < world(); ++rank) {
        in[rank].assign(50, {.value = static_cast<double>(rank) + 0.5, .index = 2});
    }
    auto out = room<Pair>(world(), 50);
    run(ranks_, [&](Communicator& c, std::size_t rank) {
        const auto op = [](const Pair& a, const Pair& b) {
            return Pair{.value = a.value + b.value, .index = a.index + b.index};
        };
        return c.all_reduce(std::span(in[rank]), std::span(out[rank]), custom(op, Commutes::yes));
    });
    const auto n = static_cast<double>(world());
    const Pair want{.value = n * n / 2, .index = 2 * static_cast<std::int64_t>(world())};
    expect_everywhere(out, std::vector<Pair>(50, want));
}

}  // namespace
}  // namespace nexar::testing
