// Members that cannot reach each other, and a node that cannot reach a majority.

#include "verdicts.hpp"

namespace nexar::engine {
namespace {

const Error cut(Errc::peer_unreachable, "rank 0 cannot reach rank 1, although others can");

class PartitionTest : public VerdictsTest {};

// Partitions between two members.

TEST_F(PartitionTest, unreachable_peer_ends_operations_with_it_only) {
    const Asked& streaming = send(kHostile, 3000);
    const Asked& announced = send(kHostile, 3000, true);
    const Asked& any = receive_in(*world_, {});
    const Asked& other = receive(kHonest, 5);
    const Asked& collective = barrier_in(*world_);
    const Asked& unrelated = barrier_in(*staying_);
    const Called& called = call(kHostile, 10);
    engine_->set_unreachable(node(1), cut);
    EXPECT_EQ(streaming.ended, 0);
    pump();
    for (const Asked* asked : {&std::as_const(*waiting_), &streaming, &announced, &collective}) {
        expect_ended_with(*asked, Errc::peer_unreachable, "rank 0 cannot reach rank 1");
    }
    expect_failed(called, Errc::peer_unreachable);
    expect_ended_with(send(kHostile, 10), Errc::peer_unreachable, "rank 0 cannot reach rank 1");
    expect_ended_with(receive(kHostile, 6), Errc::peer_unreachable, "rank 0 cannot reach rank 1");
    expect_ended_with(barrier_in(*world_), Errc::peer_unreachable, "rank 0 cannot reach rank 1");
    EXPECT_FALSE(engine_->casualty()) << "a cluster that forms waits for a way to the peer";
    expect_failed(call(kHostile, 10), Errc::peer_unreachable);
    for (const Asked* asked : {&any, &other, &unrelated}) EXPECT_EQ(asked->ended, 0);
    EXPECT_FALSE(hostile_.closed());
    const auto aborts =
        nexar::testing::frames_of<wire::CollectiveAbort>(honest_.written(Lane::eager));
    ASSERT_FALSE(aborts.empty());
    EXPECT_EQ(aborts[0].code, Errc::peer_unreachable);
    expect_staying_works();
}

TEST_F(PartitionTest, peer_that_can_be_reached_again_works_again) {
    const Asked& streaming = send(kHostile, 3000);
    const Asked& sync = send(kHostile, 100, true);
    const Called& called = call(kHostile, 10);
    engine_->set_unreachable(node(1), cut);
    pump();
    EXPECT_EQ(streaming.ended, 1);
    EXPECT_EQ(sync.ended, 1);
    EXPECT_EQ(called.ended, 1);
    engine_->set_reachable(node(1));
    // Late answers to what was withdrawn do not violate the protocol.
    for (const auto& withdraw : control_frames<wire::Withdraw>()) {
        says(Lane::control, said(wire::Withdraw{.context = withdraw.context,
                                                .sequence = withdraw.sequence,
                                                .step = wire::WithdrawStep::done}));
    }
    says(Lane::control, said(wire::Grant{.context = kWorld, .sequence = Sequence(1)}));
    says(Lane::rpc, said(response(0, 0)));
    EXPECT_FALSE(hostile_.closed()) << *hostile_.closed();
    const Asked& sent = send(kHostile, 10);
    Asked& into = receive(kHostile, 5, 100);
    says(Lane::eager, eager(header(0, 5, 100)));
    EXPECT_EQ(sent.ended, 1);
    EXPECT_FALSE(sent.error());
    ASSERT_EQ(into.ended, 1);
    EXPECT_FALSE(into.error());
    EXPECT_EQ(into.memory, pattern(5, 100));
    const Called& again = call(kHostile, 10);
    says(Lane::rpc, said(response(1, 0)));
    EXPECT_EQ(again.ended, 1);
    EXPECT_FALSE(again.call.error);
}

TEST_F(PartitionTest, unreachable_peer_whose_link_breaks_stays_unreachable) {
    engine_->set_unreachable(node(1), cut);
    const Asked& any = receive_in(*world_, {});
    break_hostile();
    engine_->set_reachable(node(1));
    expect_ended_with(send(kHostile, 10), Errc::peer_unreachable, "rank 0 cannot reach rank 1");
    EXPECT_EQ(any.ended, 0);
    evict_hostile();
    expect_lost(any);
    expect_lost(send(kHostile, 10));
}

TEST_F(PartitionTest, verdict_on_an_undecided_peer_may_be_that_it_is_unreachable) {
    const Asked& streaming = send(kHostile, 3000);
    const Asked& any = receive_in(*world_, {});
    break_hostile();
    engine_->set_unreachable(node(1), cut);
    pump();
    expect_ended_with(streaming, Errc::peer_unreachable, "rank 0 cannot reach rank 1");
    expect_ended_with(*waiting_, Errc::peer_unreachable, "rank 0 cannot reach rank 1");
    EXPECT_EQ(any.ended, 0);
}

// Partitions of the cluster.

TEST_F(PartitionTest, minority_ends_everything_until_it_is_over) {
    const Asked& streaming = send(kHonest, 3000);
    const Asked& announced = send(kHonest, 3000, true);
    const Asked& any = receive_in(*staying_, {});
    const Asked& collective = barrier_in(*staying_);
    const Asked& local = send(kMe, 100, true);
    const Called& called = call(kHonest, 10);
    const Called& self = call(kMe, 10);
    engine_->set_minority(true);
    pump();
    for (const Asked* asked :
         {&std::as_const(*waiting_), &streaming, &announced, &any, &collective, &local}) {
        expect_ended_with(*asked, Errc::minority_partition, "majority");
    }
    expect_failed(called, Errc::minority_partition);
    expect_failed(self, Errc::minority_partition);
    expect_ended_with(send_in(*staying_, kStays, 10), Errc::minority_partition, "majority");
    expect_ended_with(receive_in(*staying_, {}), Errc::minority_partition, "majority");
    expect_ended_with(barrier_in(*staying_), Errc::minority_partition, "majority");
    EXPECT_EQ(call(kHonest, 10).error()->code(), Errc::minority_partition);
    // What arrives meanwhile is kept.
    honest_.arrive(Lane::eager, eager(header(staying_sequence_++, 9, 100, kStaying)));
    pump();
    engine_->set_minority(false);
    const Asked& kept = receive_in(*staying_, {.source = kStays, .tag = Tag(9)}, 100);
    ASSERT_EQ(kept.ended, 1);
    EXPECT_FALSE(kept.error());
    expect_staying_works();
    EXPECT_EQ(barrier_in(*staying_).ended, 0);
    EXPECT_FALSE(honest_.closed());
}

TEST_F(PartitionTest, a_minority_reports_its_failed_collectives_up_to_a_limit) {
    for (int i = 0; i < 3; ++i) engine_->set_minority(true);
    for (int i = 0; i < 2000; ++i) {
        expect_ended_with(barrier_in(*staying_), Errc::minority_partition, "majority");
    }
    const auto aborts =
        nexar::testing::frames_of<wire::CollectiveAbort>(honest_.written(Lane::eager));
    EXPECT_GE(aborts.size(), 1U);
    EXPECT_LE(aborts.size(), 300U);
    EXPECT_TRUE(aborts.back().gone);
}

TEST_F(PartitionTest, expelled_node_stays_out) {
    const Asked& any = receive_in(*staying_, {});
    const Asked& streaming = send(kHonest, 3000);
    const Asked& collective = barrier_in(*staying_);
    engine_->expel(Epoch(8));
    pump();
    for (const Asked* asked : {&any, &streaming, &collective}) {
        expect_ended_with(*asked, Errc::evicted, "epoch 8");
    }
    engine_->set_minority(true);
    engine_->set_minority(false);
    expect_ended_with(receive_in(*staying_, {}), Errc::evicted, "epoch 8");
    expect_ended_with(barrier_in(*staying_), Errc::evicted, "epoch 8");
    EXPECT_EQ(call(kHonest, 10).error()->code(), Errc::evicted);
    EXPECT_TRUE(
        nexar::testing::frames_of<wire::CollectiveAbort>(honest_.written(Lane::eager)).empty());
}

TEST_F(PartitionTest, minority_that_turns_out_to_be_an_eviction_changes_the_error) {
    engine_->set_minority(true);
    engine_->expel(Epoch(8));
    expect_ended_with(receive_in(*staying_, {}), Errc::evicted, "epoch 8");
}

}  // namespace
}  // namespace nexar::engine
