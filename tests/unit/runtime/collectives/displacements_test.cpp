// v-variants with displacements, counts of any integer type, and counts that nexar exchanges first.

#include <array>
#include <cstdint>
#include <list>
#include <numeric>

#include "unit/runtime/collectives/values.hpp"

namespace nexar::testing {
namespace {

constexpr int kUntouched = -77;

class Displacements : public WorldTest {
protected:
    /// Places chunks in reverse rank order, with gaps.
    Displacements() {
        std::int64_t at = 1;
        counts_.resize(world());
        begins_.resize(world());
        for (std::size_t rank = world(); rank-- > 0;) {
            counts_[rank] = static_cast<short>((rank * 3) % 5 * 40);
            begins_[rank] = at;
            at += counts_[rank] + 2;
        }
        room_ = static_cast<std::size_t>(at);
    }

    static int element(std::size_t from, std::size_t to, std::size_t i) {
        return static_cast<int>(10'000 * from + 100 * to + i);
    }
    std::size_t count(std::size_t rank) const { return static_cast<std::size_t>(counts_[rank]); }
    std::size_t begin(std::size_t rank) const { return static_cast<std::size_t>(begins_[rank]); }

    std::vector<int> chunk(std::size_t from, std::size_t to, std::size_t size) const {
        std::vector<int> elements(size);
        for (std::size_t i = 0; i < size; ++i) elements[i] = element(from, to, i);
        return elements;
    }
    std::vector<int> untouched() const { return std::vector<int>(room_, kUntouched); }
    /// The chunks of all ranks, each at its displacement.
    std::vector<int> placed() const {
        std::vector<int> all = untouched();
        for (std::size_t from = 0; from < world(); ++from) {
            std::ranges::copy(chunk(from, 0, count(from)),
                              all.begin() + static_cast<std::ptrdiff_t>(begin(from)));
        }
        return all;
    }

    std::vector<short> counts_;
    std::vector<std::int64_t> begins_;
    std::size_t room_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Worlds, Displacements, ::testing::Values(1, 2, 3, 5), world_name);

TEST_P(Displacements, determine_where_gathered_chunks_go) {
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t rank) {
        const auto own = chunk(rank, 0, count(rank));
        auto out = untouched();
        c.all_gather_v(own, out, counts_, begins_).wait();
        EXPECT_EQ(out, placed());
        for (int root = 0; root < c.size(); ++root) {
            out = untouched();
            if (c.rank() == root) {
                c.gather_v(own, out, counts_, begins_, root).wait();
                EXPECT_EQ(out, placed());
            } else {
                c.gather_v(own, {}, {}, {}, root).wait();
            }
        }
    });
}

TEST_P(Displacements, work_in_place) {
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t rank) {
        auto out = untouched();
        const auto own = std::span(out).subspan(begin(rank), count(rank));
        std::ranges::copy(chunk(rank, 0, count(rank)), own.begin());
        c.all_gather_v(own, out, counts_, begins_).wait();
        EXPECT_EQ(out, placed());
        const auto mine = std::span(out).subspan(begin(rank), count(rank));
        c.scatter_v(out, mine, counts_, begins_, c.size() - 1).wait();
        EXPECT_EQ(out, placed());
    });
}

TEST_P(Displacements, determine_where_scattered_chunks_come_from) {
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t rank) {
        for (int root = 0; root < c.size(); ++root) {
            std::vector<int> own(count(rank));
            if (c.rank() == root) {
                const auto all = placed();
                c.scatter_v(all, own, counts_, begins_, root).wait();
            } else {
                c.scatter_v({}, own, {}, {}, root).wait();
            }
            EXPECT_EQ(own, chunk(rank, 0, count(rank)));
        }
    });
}

TEST_P(Displacements, determine_where_exchanged_chunks_are) {
    // Rank i sends i + j + 1 elements to rank j; both buffers hold their chunks in reverse order.
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t rank) {
        std::vector<std::uint8_t> counts(world());
        std::vector<long> begins(world());
        long at = 0;
        for (std::size_t peer = world(); peer-- > 0;) {
            counts[peer] = static_cast<std::uint8_t>(rank + peer + 1);
            begins[peer] = at;
            at += counts[peer] + 1;
        }
        std::vector<int> in(static_cast<std::size_t>(at), kUntouched);
        std::vector<int> want = in;
        for (std::size_t peer = 0; peer < world(); ++peer) {
            std::ranges::copy(chunk(rank, peer, counts[peer]), in.begin() + begins[peer]);
            std::ranges::copy(chunk(peer, rank, counts[peer]), want.begin() + begins[peer]);
        }
        std::vector<int> out(in.size(), kUntouched);
        c.all_to_all_v(in, counts, begins, out, counts, begins).wait();
        EXPECT_EQ(out, want);
        c.all_to_all_v(in, counts, begins, in, counts, begins).wait();
        EXPECT_EQ(in, want);
    });
}

TEST_P(Displacements, are_refused_locally_if_they_do_not_fit) {
    Communicator& c = ranks_[0];
    const auto own = chunk(0, 0, count(0));
    auto out = untouched();
    const auto refused = [&](const auto& counts, const auto& begins) {
        const auto result = [&]() -> Result<void> {
            try {
                return outcome(c.all_gather_v(own, out, counts, begins));
            } catch (const Error& error) {
                return error;
            }
        }();
        EXPECT_EQ(code_name(result), "invalid_argument");
    };
    std::vector<std::int64_t> late = begins_;
    late[0] = static_cast<std::int64_t>(room_) + 1;
    refused(counts_, late);
    std::vector<int> negative(world(), 0);
    negative[0] = -1;
    refused(negative, begins_);
    refused(counts_, negative);
    refused(counts_, std::vector<int>(world() + 1, 0));
    if (world() > 1) refused(std::vector<int>(world(), 1), std::vector<int>(world(), 0));
    EXPECT_EQ(out, untouched());
    expect_usable(ranks_);
}

TEST_P(Displacements, counts_may_be_any_range_of_integers) {
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t rank) {
        const std::list<unsigned> counts(counts_.begin(), counts_.end());
        const auto total = std::accumulate(counts.begin(), counts.end(), 0U);
        std::vector<int> out(total);
        const auto own = chunk(rank, 0, count(rank));
        c.all_gather_v(own, out, counts).wait();
        const auto all = c.all_gather_v(own).wait();
        EXPECT_EQ(all.elements, out);
    });
}

TEST_P(Displacements, exchanged_counts_keep_the_order_of_calls) {
    // Many operations are in flight and every other one must exchange its counts first. Their
    // second halves must still match across ranks, in whatever order they start.
    constexpr int kRounds = 40;
    on_every_rank(ranks_, [&](const Communicator& c, std::size_t rank) {
        std::vector<std::vector<std::int64_t>> chunks(kRounds);
        std::vector<std::vector<double>> sums(kRounds);
        std::vector<Work<Gathered<std::int64_t>>> gathers;
        std::vector<Work<>> reductions;
        for (std::size_t round = 0; round < kRounds; ++round) {
            chunks[round].assign(round % 7 == 3 ? 30'000 : (rank * 5 + round) % 11,
                                 static_cast<std::int64_t>(100 * round + rank));
            gathers.push_back(round % 2 == 0 ? c.all_gather_v(chunks[round])
                                             : c.gather_v(chunks[round], c.size() - 1));
            sums[round].assign(round % 5 == 4 ? 50'000 : 3, 1.0 * static_cast<double>(round));
            reductions.push_back(c.all_reduce(sums[round], sum));
        }
        for (std::size_t round = kRounds; round-- > 0;) {
            reductions[round].wait();
            EXPECT_EQ(sums[round].back(), static_cast<double>(round * world()));
            const auto all = gathers[round].wait();
            if (round % 2 == 1 && c.rank() != c.size() - 1) {
                EXPECT_TRUE(all.elements.empty());
                continue;
            }
            for (int from = 0; from < c.size(); ++from) {
                for (const std::int64_t value : all.chunk(from)) {
                    EXPECT_EQ(value, static_cast<std::int64_t>(100 * round) + from);
                }
            }
            EXPECT_EQ(all.counts[rank], chunks[round].size());
        }
    });
    expect_usable(ranks_);
}

TEST_P(Displacements, later_operations_leave_credit_to_one_that_waits_for_its_counts) {
    // Rank 0 runs ahead as far as its credit allows. The other ranks do not receive those messages
    // before all_gather_v() has completed, and for that rank 0 must still be able to send.
    constexpr std::size_t kAhead = 60;
    std::vector<std::vector<float>> broadcasts(kAhead * world(), std::vector<float>(8192));
    const std::vector<int> own(20'000, 7);
    std::vector<Work<>> ahead;
    auto gathers = std::vector<Work<Gathered<int>>>();
    for (std::size_t rank = 0; rank < world(); ++rank) {
        const Communicator& c = ranks_[rank];
        gathers.push_back(c.all_gather_v(own));
        for (std::size_t i = 0; rank == 0 && i < kAhead; ++i) {
            ahead.push_back(c.broadcast(broadcasts[i], 0));
        }
    }
    for (auto& gather : gathers) {
        const auto all = outcome(gather);
        ASSERT_TRUE(all) << all.error().what();
        EXPECT_EQ((*all).elements, std::vector<int>(own.size() * world(), 7));
    }
    for (std::size_t rank = 1; rank < world(); ++rank) {
        for (std::size_t i = 0; i < kAhead; ++i) {
            ahead.push_back(ranks_[rank].broadcast(broadcasts[rank * kAhead + i], 0));
        }
    }
    expect_success(ahead);
}

TEST_P(Displacements, an_exchange_of_counts_can_be_cancelled_or_time_out) {
    if (world() == 1) return;
    const std::vector<int> own(5, 1);
    auto alone = ranks_[0].all_gather_v(own);
    alone.cancel();
    EXPECT_EQ(outcome(alone).error().code(), Errc::cancelled);
    const std::vector<int> ones(world(), 1);
    auto late = ranks_[0].all_to_all_v(ones, ones, {.timeout = std::chrono::milliseconds(30)});
    EXPECT_EQ(outcome(late).error().code(), Errc::timed_out);
    for (std::size_t rank = 1; rank < world(); ++rank) {
        EXPECT_EQ(outcome(ranks_[rank].all_gather_v(own)).error().code(), Errc::cancelled);
        EXPECT_EQ(outcome(ranks_[rank].barrier()).error().code(), Errc::timed_out);
        EXPECT_EQ(outcome(ranks_[rank].barrier()).error().code(), Errc::timed_out);
    }
    expect_usable(ranks_);
}

}  // namespace
}  // namespace nexar::testing
