// Cuts between hosts, and seeds and ranks that are killed: two parts of a cluster never both
// continue.

#include "process/chaos/partition_fixture.hpp"

namespace nexar::chaos {
namespace {

TEST_F(Partition, three_of_five_continue_and_two_are_a_minority) {
    form(5);
    if (IsSkipped()) return;
    cut(some(3, 5));
    expect_continue(some(0, 3));
    expect_minority(some(3, 5));
    expect_parked(some(3, 5));
    networks_->heal();
    expect_evicted(some(3, 5));
    expect_continue(some(0, 3));
}

TEST_F(Partition, one_of_two_continues_with_the_seed) {
    for (const std::size_t victim : {0U, 1U}) {
        form(2);
        if (IsSkipped()) return;
        cluster_->kill(*ranks_[victim]);
        expect_continue({ranks_[1 - victim]});
        EXPECT_EQ(cluster_->grow_to(2, kSoon), "");
        TearDown();
        cluster_.reset();
    }
}

TEST_F(Partition, last_of_two_parks_until_the_seed_is_back) {
    form(2);
    if (IsSkipped()) return;
    cluster_->kill_seed();
    cluster_->kill(*ranks_[0]);
    expect_minority({ranks_[1]});
    expect_parked({ranks_[1]});
    cluster_->start_seed();
    EXPECT_EQ(cluster_->await_world({ranks_[1]}, kSoon), "");
    EXPECT_EQ(cluster_->grow_to(2, kSoon), "");
}

TEST_F(Partition, two_of_three_continue_without_a_seed) {
    form(3);
    if (IsSkipped()) return;
    cluster_->kill_seed();
    cluster_->kill(*ranks_[1]);
    expect_continue({ranks_[0], ranks_[2]});
}

TEST_F(Partition, half_of_four_with_the_seed_continues) {
    form(4);
    if (IsSkipped()) return;
    cut(some(2, 4));
    expect_first_half_continues();
}

TEST_F(Partition, cut_shorter_than_the_budget_evicts_nobody) {
    form(3);
    if (IsSkipped()) return;
    const auto moved = [&] {
        return std::ranges::any_of(ranks_,
                                   [](auto* one) { return one->world_number != 1 || one->ended; });
    };
    cut(some(2, 3));
    EXPECT_FALSE(cluster_->await(moved, std::chrono::milliseconds(100))) << cluster_->describe();
    networks_->heal();
    EXPECT_FALSE(cluster_->await(moved, kWhile)) << cluster_->describe();
}

}  // namespace
}  // namespace nexar::chaos
