// The v-variants: chunks of different sizes, some of them empty.

#include <gtest/gtest.h>

#include <nexar/nexar.hpp>
#include <numeric>
#include <span>
#include <vector>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

using Counts = std::vector<std::size_t>;

std::size_t total(const Counts& counts) {
    return std::accumulate(counts.begin(), counts.end(), std::size_t{0});
}

std::size_t offset(const Counts& counts, std::size_t rank) {
    return total(part(counts, 0, rank));
}

class Uneven : public WorldTest {
protected:
    /// Calls `body(counts)` with various counts: some zero, large, all at one rank, all zero.
    template <class Body>
    void for_all_counts(Body body) {
        Counts mixed(world());
        Counts large(world());
        for (std::size_t rank = 0; rank < world(); ++rank) {
            mixed[rank] = rank % 3 == 1 ? 0 : random_bits(40, rank, 0) % 700;
            large[rank] = random_bits(41, rank, 0) % 20'000;
        }
        Counts first(world());
        first.front() = 1000;
        Counts last(world());
        last.back() = 3;
        for (const Counts& counts : {mixed, large, first, last, Counts(world())}) {
            SCOPED_TRACE(::testing::PrintToString(counts));
            body(counts);
            if (HasFailure()) return;
        }
    }

    /// The contribution of each rank.
    template <class T>
    PerRank<T> chunks(const Counts& counts, std::uint64_t seed) const {
        PerRank<T> all;
        for (std::size_t rank = 0; rank < world(); ++rank) {
            all.push_back(elements<T>(Values::distinct, seed, rank, counts[rank]));
        }
        return all;
    }
};

INSTANTIATE_TEST_SUITE_P(In, Uneven, every_world(), world_name);

TEST_P(Uneven, all_gather_v_gives_every_rank_the_chunks_of_all_ranks) {
    for_all_counts([&](const Counts& counts) {
        const auto in = chunks<float>(counts, 51);
        auto out = room<float>(world(), total(counts));
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_gather_v(std::span(in[rank]), std::span(out[rank]), counts);
        });
        expect_everywhere(out, joined(in));
    });
}

TEST_P(Uneven, all_gather_v_works_in_place) {
    for_all_counts([&](const Counts& counts) {
        const auto in = chunks<std::int64_t>(counts, 52);
        auto out = room<std::int64_t>(world(), total(counts));
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            const auto own = std::span(out[rank]).subspan(offset(counts, rank), counts[rank]);
            std::ranges::copy(in[rank], own.begin());
            return c.all_gather_v(own, std::span(out[rank]), counts);
        });
        expect_everywhere(out, joined(in));
    });
}

TEST_P(Uneven, gather_v_needs_counts_only_at_the_root) {
    for_all_counts([&](const Counts& counts) {
        for_every_root(total(counts) / world(), [&](int root) {
            const auto in = chunks<float>(counts, 53);
            auto out = room<float>(1, total(counts)).front();
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                if (c.rank() != root) {
                    return c.gather_v(std::span(in[rank]), std::span<float>(), {}, root);
                }
                return c.gather_v(std::span(in[rank]), std::span(out), counts, root);
            });
            EXPECT_TRUE(same(static_cast<std::size_t>(root), out, joined(in)));
        });
    });
}

TEST_P(Uneven, gather_v_works_in_place_at_the_root) {
    for_all_counts([&](const Counts& counts) {
        const auto in = chunks<float>(counts, 54);
        auto out = room<float>(1, total(counts)).front();
        const auto own = std::span(out).subspan(offset(counts, world() - 1), counts.back());
        std::ranges::copy(in.back(), own.begin());
        const int root = static_cast<int>(world()) - 1;
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            if (c.rank() == root) return c.gather_v(own, std::span(out), counts, root);
            return c.gather_v(std::span(in[rank]), std::span<float>(), {}, root);
        });
        EXPECT_TRUE(same(world() - 1, out, joined(in)));
    });
}

TEST_P(Uneven, scatter_v_needs_counts_only_at_the_root) {
    for_all_counts([&](const Counts& counts) {
        for_every_root(total(counts) / world(), [&](int root) {
            const auto want = chunks<std::int64_t>(counts, 55);
            const auto in = joined(want);
            auto out = chunks<std::int64_t>(counts, 56);
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                const std::span to(out[rank]);
                if (c.rank() == root) return c.scatter_v(std::span(in), to, counts, root);
                return c.scatter_v(std::span<const std::int64_t>(), to, {}, root);
            });
            expect_each(out, want);
        });
    });
}

TEST_P(Uneven, scatter_v_works_in_place_at_the_root) {
    for_all_counts([&](const Counts& counts) {
        const auto want = chunks<float>(counts, 57);
        auto in = joined(want);
        auto out = chunks<float>(counts, 58);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            if (rank == 0) {
                return c.scatter_v(std::span(in), std::span(in).first(counts[0]), counts, 0);
            }
            return c.scatter_v(std::span<const float>(), std::span(out[rank]), {}, 0);
        });
        out[0] = part(in, 0, counts[0]);
        expect_each(out, want);
    });
}

TEST_P(Uneven, reduce_scatter_v_gives_every_rank_its_chunk_of_the_fold) {
    for_all_counts([&](const Counts& counts) {
        for (const bool in_place : {false, true}) {
            auto in = inputs<float>(Values::summable, 59, world(), total(counts));
            const auto all = folded(ReduceOp::sum, in);
            auto apart = chunks<float>(counts, 60);
            std::vector<std::span<float>> out;
            for (std::size_t rank = 0; rank < world(); ++rank) {
                const std::span own =
                    std::span(in[rank]).subspan(offset(counts, rank), counts[rank]);
                out.push_back(in_place ? own : std::span(apart[rank]));
            }
            run(ranks_, [&](Communicator& c, std::size_t rank) {
                return c.reduce_scatter_v(std::span(in[rank]), out[rank], counts, sum);
            });
            for (std::size_t rank = 0; rank < world(); ++rank) {
                const auto want = part(all, offset(counts, rank), counts[rank]);
                EXPECT_TRUE(same<float>(rank, out[rank], want));
            }
        }
    });
}

/// counts[i][j] is the number of elements that rank i sends to rank j.
using Matrix = std::vector<Counts>;

Matrix transposed(const Matrix& counts) {
    Matrix turned(counts.size(), Counts(counts.size()));
    for (std::size_t i = 0; i < counts.size(); ++i) {
        for (std::size_t j = 0; j < counts.size(); ++j) turned[j][i] = counts[i][j];
    }
    return turned;
}

template <class T>
PerRank<T> exchanged(const PerRank<T>& in, const Matrix& counts) {
    PerRank<T> out(in.size());
    for (std::size_t to = 0; to < in.size(); ++to) {
        for (std::size_t from = 0; from < in.size(); ++from) {
            const auto chunk = part(in[from], offset(counts[from], to), counts[from][to]);
            out[to].insert(out[to].end(), chunk.begin(), chunk.end());
        }
    }
    return out;
}

class Exchange : public WorldTest {
protected:
    Matrix matrix(std::uint64_t seed, std::size_t most) const {
        Matrix counts(world(), Counts(world()));
        for (std::size_t i = 0; i < world(); ++i) {
            for (std::size_t j = 0; j < world(); ++j) {
                const std::uint64_t bits = random_bits(seed, i, j);
                counts[i][j] = bits % 4 == 0 ? 0 : (bits >> 8U) % most;
            }
        }
        return counts;
    }
    template <class T>
    PerRank<T> input(const Matrix& counts, std::uint64_t seed) const {
        PerRank<T> in;
        for (std::size_t rank = 0; rank < world(); ++rank) {
            in.push_back(elements<T>(Values::distinct, seed, rank, total(counts[rank])));
        }
        return in;
    }
};

INSTANTIATE_TEST_SUITE_P(In, Exchange, every_world(), world_name);

TEST_P(Exchange, all_to_all_v_moves_the_agreed_count_between_each_pair) {
    for (const std::size_t most : {2U, 300U, 30'000U}) {
        const Matrix sends = matrix(61, most);
        const Matrix receives = transposed(sends);
        const auto in = input<float>(sends, 62);
        auto out = input<float>(receives, 63);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            return c.all_to_all_v(std::span(in[rank]), sends[rank], std::span(out[rank]),
                                  receives[rank]);
        });
        expect_each(out, exchanged(in, sends));
    }
}

TEST_P(Exchange, all_to_all_v_works_in_place_when_counts_are_symmetric) {
    for (const std::size_t most : {2U, 300U, 30'000U}) {
        Matrix counts = matrix(64, most);
        for (std::size_t i = 0; i < world(); ++i) {
            for (std::size_t j = 0; j < i; ++j) counts[i][j] = counts[j][i];
        }
        auto values = input<std::int64_t>(counts, 65);
        const auto want = exchanged(values, counts);
        run(ranks_, [&](Communicator& c, std::size_t rank) {
            const std::span own(values[rank]);
            return c.all_to_all_v(own, counts[rank], own, counts[rank]);
        });
        expect_each(values, want);
    }
}

TEST_P(Exchange, missing_counts_are_exchanged_first) {
    const Matrix sends = matrix(66, 700);
    const auto in = input<float>(sends, 67);
    const auto want = exchanged(in, sends);
    on_every_rank(ranks_, [&](Communicator& c, std::size_t rank) {
        const auto got = c.all_to_all_v(in[rank], sends[rank]).wait();
        EXPECT_EQ(got.counts, transposed(sends)[rank]);
        EXPECT_EQ(got.elements, want[rank]);

        const auto all = c.all_gather_v(in[rank]).wait();
        std::vector<float> joined;
        for (const auto& chunk : in) joined.insert(joined.end(), chunk.begin(), chunk.end());
        EXPECT_EQ(all.elements, joined);
        EXPECT_EQ(all.counts[rank], in[rank].size());

        const int root = c.size() - 1;
        const auto gathered = c.gather_v(in[rank], root).wait();
        EXPECT_EQ(gathered.elements, c.rank() == root ? joined : std::vector<float>{});
        EXPECT_EQ(c.scatter_v(gathered.elements, gathered.counts, root).wait(), in[rank]);
    });
}

}  // namespace
}  // namespace nexar::testing
