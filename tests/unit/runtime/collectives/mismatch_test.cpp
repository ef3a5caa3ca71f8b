// Ranks whose calls do not match: every rank gets an error that describes the calls, and the
// communicator stays usable.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nexar/nexar.hpp>
#include <span>
#include <string>
#include <vector>

#include "ranks.hpp"

namespace nexar::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Matcher;

/// Every rank fails with invalid_argument and a text that matches.
void expect_all_fail(std::vector<Work<>>& works, const Matcher<std::string>& text) {
    const auto all = outcomes(works);
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
        EXPECT_EQ(code_name(all[rank]), "invalid_argument") << "rank " << rank;
        if (!all[rank]) {
            EXPECT_THAT(std::string(all[rank].error().what()), text) << "rank " << rank;
        }
    }
}

class Mismatch : public WorldTest {};

INSTANTIATE_TEST_SUITE_P(In, Mismatch, ::testing::Values(3, 4, 5, 8), world_name);

TEST_P(Mismatch, different_counts_are_described_on_every_rank) {
    auto values = inputs<float>(Values::summable, 260, world(), 1024);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        return c.all_reduce(std::span(values[rank]).first(rank == 2 ? 1024 : 1000), sum);
    });
    expect_all_fail(works,
                    AllOf(HasSubstr("all_reduce #0"), HasSubstr("rank 2 called f32 x 1024 sum"),
                          HasSubstr("called f32 x 1000 sum")));
    expect_usable(ranks_);
}

TEST_P(Mismatch, the_error_contains_the_number_of_the_call) {
    for (int i = 0; i < 3; ++i) expect_usable(ranks_);
    auto values = inputs<float>(Values::summable, 261, world(), 20);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        return c.all_reduce(std::span(values[rank]).first(rank == 0 ? 10 : 20), sum);
    });
    expect_all_fail(works, HasSubstr("all_reduce #3"));
    expect_usable(ranks_);
}

TEST_P(Mismatch, different_large_counts_are_detected) {
    auto values = inputs<float>(Values::summable, 262, world(), 300'001);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        return c.all_reduce(std::span(values[rank]).first(rank == 1 ? 300'001 : 300'000), sum);
    });
    expect_all_fail(works, AllOf(HasSubstr("f32 x 300001 sum"), HasSubstr("f32 x 300000 sum")));
    expect_usable(ranks_);
}

TEST_P(Mismatch, different_types_are_detected) {
    std::vector<float> floats(64, 1.5F);
    auto ints = inputs<std::int32_t>(Values::distinct, 263, world(), 64);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        if (rank == 0) return c.all_reduce(std::span(floats), sum);
        return c.all_reduce(std::span(ints[rank]), sum);
    });
    expect_all_fail(works, AllOf(HasSubstr("f32 x 64 sum"), HasSubstr("i32 x 64 sum")));
    expect_usable(ranks_);
}

TEST_P(Mismatch, different_operators_are_detected) {
    auto values = inputs<float>(Values::summable, 264, world(), 64);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        return c.all_reduce(std::span(values[rank]), rank + 1 == world() ? max : sum);
    });
    expect_all_fail(works, AllOf(HasSubstr("f32 x 64 sum"), HasSubstr("f32 x 64 max")));
    expect_usable(ranks_);
}

TEST_P(Mismatch, different_operations_are_detected) {
    auto values = inputs<float>(Values::summable, 265, world(), 64);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        const std::span own(values[rank]);
        return rank == 1 ? c.broadcast(own, 0) : c.all_reduce(own, sum);
    });
    expect_all_fail(works, AllOf(HasSubstr("all_reduce"), HasSubstr("broadcast")));
    expect_usable(ranks_);
}

TEST_P(Mismatch, a_barrier_against_another_operation_is_detected) {
    auto values = inputs<float>(Values::summable, 266, world(), 64);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        return rank == 2 ? c.barrier() : c.all_reduce(std::span(values[rank]), sum);
    });
    expect_all_fail(works, AllOf(HasSubstr("all_reduce"), HasSubstr("barrier")));
    expect_usable(ranks_);
}

TEST_P(Mismatch, different_roots_are_detected) {
    auto values = inputs<float>(Values::summable, 267, world(), 64);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        return c.broadcast(std::span(values[rank]), rank == 0 ? 1 : 2);
    });
    // The other ranks agree with each other and may complete before they hear of the mismatch.
    const auto all = outcomes(works);
    ASSERT_EQ(code_name(all[0]), "invalid_argument");
    for (const auto& one : all) {
        if (one) continue;
        EXPECT_THAT(std::string(one.error().what()),
                    AllOf(HasSubstr("broadcast"), HasSubstr("root 1"), HasSubstr("root 2")));
    }
    expect_usable(ranks_);
}

/// Rank 0 passes root 1, the others root 2. Rank `fails` waits for data that never arrives and gets
/// an error with both calls; the other ranks may complete before that.
void expect_root_mismatch(std::vector<Communicator>& ranks, std::size_t fails,
                          const std::function<Work<>(Communicator&, std::size_t, int)>& start) {
    auto works = start_all(ranks, [&](Communicator& c, std::size_t rank) {
        return start(c, rank, rank == 0 ? 1 : 2);
    });
    const auto all = outcomes(works);
    EXPECT_EQ(code_name(all[fails]), "invalid_argument");
    for (const auto& one : all) {
        if (one) continue;
        EXPECT_THAT(std::string(one.error().what()),
                    AllOf(HasSubstr("root 1"), HasSubstr("root 2")));
    }
    expect_usable(ranks);
}

TEST_P(Mismatch, different_roots_fail_the_ranks_that_wait_for_data) {
    for (const std::size_t count : {10U, 9'000U, 40'000U}) {
        SCOPED_TRACE(std::to_string(count) + " elements");
        auto values = inputs<float>(Values::summable, 271, world(), count);
        std::vector<std::vector<float>> all(world(), std::vector<float>(count * world()));
        expect_root_mismatch(ranks_, 0, [&](Communicator& c, std::size_t rank, int root) {
            return c.broadcast(std::span(values[rank]), root);
        });
        expect_root_mismatch(ranks_, 2, [&](Communicator& c, std::size_t rank, int root) {
            return c.reduce(std::span(values[rank]), std::span(all[rank]).first(count), sum, root);
        });
        expect_root_mismatch(ranks_, 2, [&](Communicator& c, std::size_t rank, int root) {
            return c.gather(std::span(values[rank]), std::span(all[rank]), root);
        });
        expect_root_mismatch(ranks_, 0, [&](Communicator& c, std::size_t rank, int root) {
            return c.scatter(std::span(all[rank]), std::span(values[rank]), root);
        });
    }
}

TEST_P(Mismatch, a_mismatch_does_not_affect_other_operations_in_flight) {
    constexpr std::size_t kCount = 500;
    auto before = inputs<float>(Values::summable, 268, world(), kCount);
    auto wrong = inputs<float>(Values::summable, 269, world(), kCount);
    auto after = inputs<float>(Values::summable, 270, world(), kCount);
    const auto want_before = folded(ReduceOp::sum, before);
    const auto want_after = folded(ReduceOp::sum, after);
    std::vector<Work<>> good;
    std::vector<Work<>> bad;
    for (std::size_t rank = 0; rank < world(); ++rank) {
        const Communicator& c = ranks_[rank];
        good.push_back(c.all_reduce(std::span(before[rank]), sum));
        bad.push_back(c.all_reduce(std::span(wrong[rank]).first(rank == 1 ? 499 : 500), sum));
        good.push_back(c.all_reduce(std::span(after[rank]), sum));
    }
    expect_success(good);
    expect_all_fail(bad, AllOf(HasSubstr("f32 x 499 sum"), HasSubstr("f32 x 500 sum")));
    expect_everywhere(before, want_before);
    expect_everywhere(after, want_after);
}

TEST_P(Mismatch, a_mismatch_leaves_inputs_unchanged) {
    const auto in = inputs<float>(Values::summable, 271, world(), 2000);
    auto out = room<float>(world(), 2000);
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        const std::size_t count = rank == 0 ? 1999 : 2000;
        return c.all_reduce(std::span(in[rank]).first(count), std::span(out[rank]).first(count),
                            sum);
    });
    expect_all_fail(works, HasSubstr("1999"));
    expect_each(in, inputs<float>(Values::summable, 271, world(), 2000));
}

// Rank 0 sends `sent` bytes to rank 1, which expects `wanted`. The other pairs agree.
std::vector<Result<void>> disagree(std::vector<Communicator>& ranks, std::size_t sent,
                                   std::size_t wanted) {
    const std::size_t world = ranks.size();
    std::vector<std::vector<std::size_t>> sends(world, std::vector<std::size_t>(world, 10));
    auto receives = sends;
    sends[0][1] = sent;
    receives[1][0] = wanted;
    const auto in = inputs<std::uint8_t>(Values::distinct, 272, world, 10 * world + sent);
    auto out = room<std::uint8_t>(world, 10 * world + wanted);
    auto works = start_all(ranks, [&](Communicator& c, std::size_t rank) {
        const std::size_t given = rank == 0 ? 10 * (world - 1) + sent : 10 * world;
        const std::size_t taken = rank == 1 ? 10 * (world - 1) + wanted : 10 * world;
        return c.all_to_all_v(std::span(in[rank]).first(given), sends[rank],
                              std::span(out[rank]).first(taken), receives[rank]);
    });
    auto all = outcomes(works);
    // A rank that already has all its data is not affected.
    for (const auto& result : all) {
        EXPECT_THAT(code_name(result), ::testing::AnyOf("success", "invalid_argument"));
    }
    return all;
}

std::string both_sizes(std::size_t sent, std::size_t wanted) {
    return "rank 0 sends " + std::to_string(sent) + " bytes to rank 1, which expects " +
           std::to_string(wanted);
}

TEST_P(Mismatch, different_sizes_of_a_pair_in_all_to_all_v_are_both_described) {
    for (const auto& [sent, wanted] : std::vector<std::pair<std::size_t, std::size_t>>{
             {1005, 1007}, {1007, 1005}, {123'456, 1005}, {1005, 123'456}, {0, 1005}}) {
        SCOPED_TRACE(std::to_string(sent) + " for " + std::to_string(wanted));
        const auto all = disagree(ranks_, sent, wanted);
        ASSERT_EQ(code_name(all[1]), "invalid_argument");
        EXPECT_THAT(all[1].error().what(),
                    AllOf(HasSubstr("all_to_all_v #"), HasSubstr(both_sizes(sent, wanted))));
        expect_usable(ranks_);
    }
}

TEST_P(Mismatch, a_sender_learns_that_a_finished_rank_expected_nothing) {
    const std::size_t sent = 123'456;
    const auto all = disagree(ranks_, sent, 0);
    const auto& failed = all[0] ? all[1] : all[0];
    ASSERT_EQ(code_name(failed), "invalid_argument");
    EXPECT_THAT(failed.error().what(), HasSubstr(both_sizes(sent, 0)));
    expect_usable(ranks_);
}

TEST_P(Mismatch, a_root_that_waits_for_a_rank_without_data_gets_an_error) {
    std::vector<std::size_t> counts(world(), 10);
    const auto in = inputs<std::uint8_t>(Values::distinct, 273, world(), 10);
    std::vector<std::uint8_t> out(10 * world());
    auto works = start_all(ranks_, [&](Communicator& c, std::size_t rank) {
        const auto own = std::span(in[rank]).first(rank == 2 ? 0 : 10);
        const std::span<std::uint8_t> all = out;
        if (rank == 0) return c.gather_v(own, all, counts, 0);
        return c.gather_v(own, all.first(0), {}, 0);
    });
    const auto all = outcomes(works);
    ASSERT_EQ(code_name(all[0]), "invalid_argument");
    EXPECT_THAT(all[0].error().what(),
                HasSubstr("rank 2 sends 0 bytes to rank 0, which expects 10"));
    expect_usable(ranks_);
}

}  // namespace
}  // namespace nexar::testing
