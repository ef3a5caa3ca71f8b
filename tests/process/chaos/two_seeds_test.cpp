// Two seeds, and a seed whose state is an old copy: only the witness that the members' view names
// may vote.

#include "process/chaos/partition_fixture.hpp"

namespace nexar::chaos {
namespace {

class TwoSeeds : public Partition {
protected:
    bool await_epoch(std::int64_t epoch, std::chrono::seconds within) {
        return cluster_->await(
            [&] {
                return std::ranges::all_of(ranks_, [&](auto* one) { return one->epoch >= epoch; });
            },
            within);
    }
};

TEST_F(TwoSeeds, half_without_the_witness_stands_still) {
    form(4, {.second_seed = true});
    if (IsSkipped()) return;
    // The first seed stays with ranks 0 and 1, the second one with 2 and 3.
    std::vector<int> apart{cluster_->second_seed_host()};
    for (const Process* one : some(2, 4)) apart.push_back(one->host);
    networks_->cut(apart);
    expect_first_half_continues();
}

TEST_F(TwoSeeds, second_seed_becomes_witness_and_admits_processes) {
    form(2, {.second_seed = true});
    if (IsSkipped()) return;
    cluster_->kill_seed();
    ASSERT_TRUE(await_epoch(2, std::chrono::seconds(20))) << cluster_->describe();
    ASSERT_TRUE(cluster_->await_second_seed(kSoon)) << cluster_->describe();
    cluster_->kill(*ranks_[0]);
    expect_continue({ranks_[1]});
    cluster_->use_second_seed();
    EXPECT_EQ(cluster_->grow_to(2, kSoon), "");
}

TEST_F(TwoSeeds, seed_with_an_old_copy_of_its_state_does_not_vote) {
    form(4);
    if (IsSkipped()) return;
    cluster_->copy_seed_state();
    cut(some(2, 4));
    expect_continue(some(0, 2));
    expect_minority(some(2, 4));
    // The seed forgets that it voted to evict ranks 2 and 3, and reaches only these.
    cluster_->kill_seed();
    cut(some(2, 4), true);
    cluster_->restore_seed_state();
    cluster_->start_seed();
    expect_parked(some(2, 4));
    expect_continue(some(0, 2));
    networks_->heal();
    expect_evicted(some(2, 4));
    EXPECT_EQ(cluster_->grow_to(4, std::chrono::seconds(30)), "");
}

}  // namespace
}  // namespace nexar::chaos
