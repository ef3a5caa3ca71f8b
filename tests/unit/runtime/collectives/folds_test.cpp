// Operations that fold elements of several ranks, at every world size and around the sizes at which
// algorithms change, in place and out of place.

#include <gtest/gtest.h>

#include <nexar/nexar.hpp>
#include <span>
#include <vector>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

class Folds : public WorldTest {};

INSTANTIATE_TEST_SUITE_P(In, Folds, every_world(), world_name);

TEST_P(Folds, all_reduce_gives_every_rank_the_fold_of_all_ranks) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        const auto in = inputs<T>(Values::summable, 1, world(), count);
        auto out = room<T>(world(), count);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_reduce(std::span(in[rank]), std::span(out[rank]), sum);
        });
        expect_everywhere(out, folded(ReduceOp::sum, in));
        expect_each(in, inputs<T>(Values::summable, 1, world(), count));
    });
}

TEST_P(Folds, all_reduce_works_in_place) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        auto values = inputs<T>(Values::distinct, 2, world(), count);
        const auto want = folded(ReduceOp::max, values);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_reduce(std::span(values[rank]), max);
        });
        expect_everywhere(values, want);
    });
}

TEST_P(Folds, all_reduce_may_be_in_place_on_only_some_ranks) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        auto in = inputs<T>(Values::summable, 3, world(), count);
        const auto want = folded(ReduceOp::sum, in);
        auto out = room<T>(world(), count);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            auto& to = rank % 2 == 0 ? in[rank] : out[rank];
            return c.all_reduce(std::span(in[rank]), std::span(to), sum);
        });
        for (std::size_t rank = 0; rank < world(); rank += 2) std::swap(in[rank], out[rank]);
        expect_everywhere(out, want);
    });
}

TEST_P(Folds, reduce_gives_the_root_the_fold_of_all_ranks) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        for_every_root(count, [&](int root) {
            const auto in = inputs<T>(Values::summable, 4, world(), count);
            auto out = room<T>(1, count).front();
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                const auto to = c.rank() == root ? std::span(out) : std::span<T>();
                return c.reduce(std::span(in[rank]), to, sum, root);
            });
            EXPECT_TRUE(same(static_cast<std::size_t>(root), out, folded(ReduceOp::sum, in)));
            expect_each(in, inputs<T>(Values::summable, 4, world(), count));
        });
    });
}

TEST_P(Folds, reduce_works_in_place_at_the_root) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        for_every_root(count, [&](int root) {
            auto values = inputs<T>(Values::summable, 5, world(), count);
            auto want = values;
            want[static_cast<std::size_t>(root)] = folded(ReduceOp::sum, values);
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                const auto to = c.rank() == root ? std::span(values[rank]) : std::span<T>();
                return c.reduce(std::span(values[rank]), to, sum, root);
            });
            expect_each(values, want);
        });
    });
}

TEST_P(Folds, reduce_ignores_the_output_of_ranks_other_than_the_root) {
    auto in = inputs<float>(Values::summable, 6, world(), 10);
    auto out = room<float>(world(), 3);
    out.back().resize(10);
    auto want = out;
    want.back() = folded(ReduceOp::sum, in);
    run(ranks_, [&](Communicator& c, std::size_t rank) {
        return c.reduce(std::span(in[rank]), std::span(out[rank]), sum, c.size() - 1);
    });
    expect_each(out, want);
}

TEST_P(Folds, scan_gives_every_rank_the_fold_up_to_and_including_itself) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        for (const bool in_place : {false, true}) {
            auto in = inputs<T>(Values::summable, 7, world(), count);
            PerRank<T> want;
            for (std::size_t rank = 0; rank < world(); ++rank) {
                want.push_back(folded(ReduceOp::sum, in, rank + 1));
            }
            auto apart = room<T>(world(), count);
            auto& out = in_place ? in : apart;
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                return c.scan(std::span(in[rank]), std::span(out[rank]), sum);
            });
            expect_each(out, want);
        }
    });
}

TEST_P(Folds, exclusive_scan_gives_every_rank_the_fold_of_the_ranks_before_it) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        for (const bool in_place : {false, true}) {
            auto in = inputs<T>(Values::summable, 8, world(), count);
            PerRank<T> want(world());
            for (std::size_t rank = 1; rank < world(); ++rank) {
                want[rank] = folded(ReduceOp::sum, in, rank);
            }
            auto apart = room<T>(world(), count);
            auto& out = in_place ? in : apart;
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                return c.exclusive_scan(std::span(in[rank]), std::span(out[rank]), sum);
            });
            want[0] = out[0];  // undefined
            expect_each(out, want);
        }
    });
}

TEST_P(Folds, reduce_scatter_gives_every_rank_its_chunk_of_the_fold) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        const auto in = inputs<T>(Values::summable, 9, world(), count * world());
        const auto all = folded(ReduceOp::sum, in);
        PerRank<T> want;
        for (std::size_t rank = 0; rank < world(); ++rank) {
            want.push_back(part(all, rank * count, count));
        }
        auto out = room<T>(world(), count);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.reduce_scatter(std::span(in[rank]), std::span(out[rank]), sum);
        });
        expect_each(out, want);
    });
}

TEST_P(Folds, reduce_scatter_in_place_overwrites_the_ranks_own_chunk) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        auto values = inputs<T>(Values::summable, 10, world(), count * world());
        const auto all = folded(ReduceOp::sum, values);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            const std::span whole(values[rank]);
            return c.reduce_scatter(whole, whole.subspan(rank * count, count), sum);
        });
        for (std::size_t rank = 0; rank < world(); ++rank) {
            EXPECT_TRUE(same(rank, part(values[rank], rank * count, count),
                             part(all, rank * count, count)));
        }
    });
}

}  // namespace
}  // namespace nexar::testing
