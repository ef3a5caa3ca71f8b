// Operations that move elements without folding them, and the barrier, at every world size.

#include <gtest/gtest.h>

#include <chrono>
#include <nexar/nexar.hpp>
#include <span>
#include <vector>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

using namespace std::chrono_literals;

class Moves : public WorldTest {
protected:
    /// Element `to` holds chunk `to` of each rank, in rank order.
    template <class T>
    static PerRank<T> transposed(const PerRank<T>& in, std::size_t count) {
        PerRank<T> out(in.size());
        for (std::size_t to = 0; to < in.size(); ++to) {
            for (const auto& from : in) {
                const auto chunk = part(from, to * count, count);
                out[to].insert(out[to].end(), chunk.begin(), chunk.end());
            }
        }
        return out;
    }
};

INSTANTIATE_TEST_SUITE_P(In, Moves, every_world(), world_name);

TEST_P(Moves, broadcast_gives_every_rank_the_elements_of_the_root) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        for_every_root(count, [&](int root) {
            auto values = inputs<T>(Values::distinct, 21, world(), count);
            const auto want = values[static_cast<std::size_t>(root)];
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                return c.broadcast(std::span(values[rank]), root);
            });
            expect_everywhere(values, want);
        });
    });
}

TEST_P(Moves, all_gather_gives_every_rank_the_chunks_of_all_ranks) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        const auto in = inputs<T>(Values::distinct, 22, world(), count);
        auto out = room<T>(world(), count * world());
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_gather(std::span(in[rank]), std::span(out[rank]));
        });
        expect_everywhere(out, joined(in));
        expect_each(in, inputs<T>(Values::distinct, 22, world(), count));
    });
}

TEST_P(Moves, all_gather_works_in_place) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        const auto in = inputs<T>(Values::distinct, 23, world(), count);
        auto out = room<T>(world(), count * world());
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            const auto own = std::span(out[rank]).subspan(rank * count, count);
            std::ranges::copy(in[rank], own.begin());
            return c.all_gather(own, std::span(out[rank]));
        });
        expect_everywhere(out, joined(in));
    });
}

TEST_P(Moves, gather_gives_the_root_the_chunks_of_all_ranks) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        for_every_root(count, [&](int root) {
            const auto in = inputs<T>(Values::distinct, 24, world(), count);
            auto out = room<T>(1, count * world()).front();
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                const auto to = c.rank() == root ? std::span(out) : std::span<T>();
                return c.gather(std::span(in[rank]), to, root);
            });
            EXPECT_TRUE(same(static_cast<std::size_t>(root), out, joined(in)));
        });
    });
}

TEST_P(Moves, gather_works_in_place_at_the_root) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        for_every_root(count, [&](int root) {
            const auto in = inputs<T>(Values::distinct, 25, world(), count);
            auto out = room<T>(1, count * world()).front();
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                if (c.rank() != root) return c.gather(std::span(in[rank]), std::span<T>(), root);
                const auto own = std::span(out).subspan(rank * count, count);
                std::ranges::copy(in[rank], own.begin());
                return c.gather(own, std::span(out), root);
            });
            EXPECT_TRUE(same(static_cast<std::size_t>(root), out, joined(in)));
        });
    });
}

TEST_P(Moves, scatter_gives_every_rank_its_chunk_of_the_roots_elements) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        for_every_root(count, [&](int root) {
            const auto want = inputs<T>(Values::distinct, 26, world(), count);
            const auto in = joined(want);
            auto out = room<T>(world(), count);
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                const auto from = c.rank() == root ? std::span(in) : std::span<const T>();
                return c.scatter(from, std::span(out[rank]), root);
            });
            expect_each(out, want);
            EXPECT_TRUE(same(static_cast<std::size_t>(root), in, joined(want)));
        });
    });
}

TEST_P(Moves, scatter_works_in_place_at_the_root) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        for_every_root(count, [&](int root) {
            const auto want = inputs<T>(Values::distinct, 27, world(), count);
            auto in = joined(want);
            auto out = room<T>(world(), count);
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                if (c.rank() != root) {
                    return c.scatter(std::span<const T>(), std::span(out[rank]), root);
                }
                return c.scatter(std::span(in), std::span(in).subspan(rank * count, count), root);
            });
            const auto at = static_cast<std::size_t>(root);
            out[at] = part(in, at * count, count);
            expect_each(out, want);
        });
    });
}

TEST_P(Moves, all_to_all_gives_chunk_j_of_rank_i_to_rank_j) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        const auto in = inputs<T>(Values::distinct, 28, world(), count * world());
        auto out = room<T>(world(), count * world());
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_to_all(std::span(in[rank]), std::span(out[rank]));
        });
        expect_each(out, transposed(in, count));
        expect_each(in, inputs<T>(Values::distinct, 28, world(), count * world()));
    });
}

TEST_P(Moves, all_to_all_works_in_place) {
    for_every_size([&]<class T>(std::type_identity<T>, std::size_t count) {
        auto values = inputs<T>(Values::distinct, 29, world(), count * world());
        const auto want = transposed(values, count);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_to_all(std::span(values[rank]), std::span(values[rank]));
        });
        expect_each(values, want);
    });
}

TEST_P(Moves, barrier_completes_only_after_every_rank_has_called_it) {
    for (std::size_t last = 0; last < world(); ++last) {
        std::vector<Work<>> works(world());
        for (std::size_t rank = 0; rank < world(); ++rank) {
            if (rank != last) works[rank] = ranks_[rank].barrier();
        }
        for (std::size_t rank = 0; rank < world(); ++rank) {
            if (rank != last) {
                EXPECT_FALSE(works[rank].wait_for(2ms)) << rank;
            }
        }
        works[last] = ranks_[last].barrier();
        expect_success(works);
    }
    for (int i = 0; i < 100; ++i)
        run(ranks_, [](Communicator& c, std::size_t) { return c.barrier(); });
}

TEST_P(Moves, an_operation_may_start_while_another_is_in_flight) {
    auto first = inputs<float>(Values::summable, 30, world(), 5000);
    auto second = inputs<float>(Values::distinct, 31, world(), 7);
    const auto want_first = folded(ReduceOp::sum, first);
    const auto want_second = second[0];
    std::vector<Work<>> works;
    for (std::size_t rank = 0; rank < world(); ++rank) {
        works.push_back(ranks_[rank].all_reduce(std::span(first[rank]), sum));
        works.push_back(ranks_[rank].broadcast(std::span(second[rank]), 0));
    }
    expect_success(works);
    expect_everywhere(first, want_first);
    expect_everywhere(second, want_second);
}

}  // namespace
}  // namespace nexar::testing
