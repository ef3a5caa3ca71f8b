// What the recovery policies do when a process of the world is killed.

#include <gmock/gmock.h>

#include <atomic>
#include <csignal>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "process/elastic/elastic_cluster.hpp"

namespace nexar::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// What a node passed to its on_change.
struct Told {
    std::vector<int> old_members{};
    std::vector<int> new_members{};
    std::vector<int> lost{};
};

class RecoveryPolicy : public ElasticCluster {
protected:
    /// The error of calls after an abort. They may fail because of the failure before it arrives.
    static Error abort_of(const Communicator& world) {
        std::optional<Error> error;
        await("the abort", [&] {
            error = failure_of_sums(world);
            return error->code() != Errc::membership_changed;
        });
        EXPECT_EQ(error->code(), Errc::aborted) << error->what();
        return *error;
    }

    /// Lets all nodes here recover automatically and remember the events.
    void recover_automatically() {
        for (const int rank : here()) {
            node(rank).recover(Recovery::automatic, [this, rank](const WorldChange& change) {
                EXPECT_THAT(change.joined, IsEmpty());
                EXPECT_THAT(change.left, IsEmpty());
                EXPECT_FALSE(change.left_here);
                const std::scoped_lock lock(mutex_);
                told_[rank].push_back({.old_members = change.old_world.members(),
                                       .new_members = change.new_world.members(),
                                       .lost = change.lost});
            });
        }
    }

    std::vector<Told> told(int rank) {
        const std::scoped_lock lock(mutex_);
        return told_[rank];
    }

    std::mutex mutex_;
    std::map<int, std::vector<Told>> told_;
};

TEST_F(RecoveryPolicy, automatic_shrinks_the_world_of_every_survivor_and_reports_it_once) {
    form({.world = 4, .processes = {1}});
    recover_automatically();
    kill(1);
    on_nodes([](Node& node) {
        const Communicator before = node.world();
        if (before.size() == 4) {
            const Error error = failure_of_sums(before);
            EXPECT_EQ(error.code(), Errc::membership_changed) << error.what();
        }
        const Communicator world = node.world();
        EXPECT_THAT(world.members(), ElementsAre(0, 2, 3));
        for (int i = 0; i < 10; ++i) EXPECT_EQ(world.all_reduce(node.rank(), sum).wait(), 5);
    });
    for (const int rank : here()) close(rank);  // no callback runs any more
    for (const int rank : {0, 2, 3}) {
        ASSERT_EQ(told(rank).size(), 1U) << "rank " << rank;
        const Told change = told(rank).front();
        EXPECT_THAT(change.old_members, ElementsAre(0, 1, 2, 3));
        EXPECT_THAT(change.new_members, ElementsAre(0, 2, 3));
        EXPECT_THAT(change.lost, ElementsAre(1));
    }
}

TEST_F(RecoveryPolicy, automatic_ends_calls_that_wait_for_the_killed_rank) {
    form({.world = 4, .processes = {1}, .settings = {{"recovery", "automatic"}}});
    std::atomic<int> waiting = 0;
    const std::jthread killer = in_thread([&] {
        await("three receives", [&] { return waiting == 3; });
        kill(1);
    });
    on_nodes([&](Node& node) {
        std::vector<int> value(1);
        Work<Status> receive = node.world().recv(value, 1, 7);
        ++waiting;
        ASSERT_TRUE(receive.wait_for(kElasticPatience));
        const auto received = receive.result();
        ASSERT_FALSE(received.has_value());
        EXPECT_EQ(received.error().code(), Errc::membership_changed);
        EXPECT_EQ(received.error().rank(), 1);
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 5);
    });
}

TEST_F(RecoveryPolicy, automatic_lets_callbacks_wait_for_the_new_world) {
    form({.world = 3, .processes = {1}});
    std::map<int, std::atomic<int>> sizes;
    for (const int rank : here()) {
        sizes[rank] = 0;
        Node& own = node(rank);
        // Registered first, so that it runs before the node's own recovery.
        own.failures().on_change(
            [&own, &size = sizes[rank]](const std::vector<int>&) { size = own.world().size(); });
    }
    recover_automatically();
    kill(1);
    on_nodes([](Node& node) {
        EXPECT_THAT(await_failures(node, 0), ElementsAre(1));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 2);
    });
    for (const int rank : here()) close(rank);  // no callback runs any more
    for (const int rank : {0, 2}) {
        EXPECT_EQ(sizes[rank], 2);
        EXPECT_EQ(told(rank).size(), 1U);
    }
}

TEST_F(RecoveryPolicy, automatic_survives_two_kills_one_after_the_other) {
    form({.world = 5, .processes = {0, 3}});
    recover_automatically();
    tell(0, "policy automatic", "policy automatic");
    kill(3);
    tell(0, "failures 0");
    tell(0, "sum");
    on_nodes([](Node& node) {
        EXPECT_THAT(await_failures(node, 0), ElementsAre(3));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 7);
    });
    EXPECT_TRUE(process(0).writes("failures 3\nsum 7\n")) << process(0).output();
    kill(0);
    on_nodes([](Node& node) {
        EXPECT_THAT(await_failures(node, 1), ElementsAre(3, 0));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 7);
    });
    for (const int rank : here()) close(rank);  // no callback runs any more
    for (const int rank : {1, 2, 4}) {
        ASSERT_EQ(told(rank).size(), 2U) << "rank " << rank;
        EXPECT_THAT(told(rank)[0].new_members, ElementsAre(0, 1, 2, 4));
        EXPECT_THAT(told(rank)[1].old_members, ElementsAre(0, 1, 2, 4));
        EXPECT_THAT(told(rank)[1].new_members, ElementsAre(1, 2, 4));
        EXPECT_THAT(told(rank)[1].lost, ElementsAre(0)) << "its rank in the old world";
    }
}

TEST_F(RecoveryPolicy, automatic_survives_three_kills_at_once) {
    form({.world = 7, .processes = {1, 2, 5}});
    recover_automatically();
    for (const int rank : {1, 2, 5}) process(rank).send(SIGKILL);
    on_nodes([](Node& node) {
        EXPECT_EQ(await_failures(node, 2).size(), 3U);
        EXPECT_THAT(node.world().members(), ElementsAre(0, 3, 4, 6));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 13);
    });
    for (const int rank : {1, 2, 5}) EXPECT_EQ(process(rank).wait(), 128 + SIGKILL);
}

TEST_F(RecoveryPolicy, automatic_also_shrinks_a_world_that_has_lost_a_member_before) {
    form({.world = 4, .processes = {1}});
    node(0).recover(Recovery::automatic);
    kill(1);
    on_nodes([](Node& node) {
        EXPECT_EQ(await_failures(node, 0).size(), 1U);
        if (node.rank() != 0) node.recover(Recovery::automatic);
        EXPECT_THAT(node.world().members(), ElementsAre(0, 2, 3));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 5);
    });
}

TEST_F(RecoveryPolicy, automatic_works_beside_checkpoints) {
    form({.world = 5, .processes = {1}, .settings = {{"recovery", "automatic"}}});
    for (int i = 0; i < 50; ++i) tell(1, "checkpoint");
    const std::jthread killer = in_thread([&] {
        EXPECT_TRUE(process(1).writes("checkpoint nothing\n", 5)) << process(1).output();
        kill(1);
    });
    on_nodes([](Node& node) {
        await("the checkpoint with which rank 0 leaves", [&] {
            // The others go on until rank 0 leaves, so that all end with the same checkpoint.
            if (node.rank() == 0 && !node.failures().list().empty()) node.leave();
            try {
                return node.elastic_checkpoint().has_value();
            } catch (const Error& error) {
                EXPECT_EQ(error.code(), Errc::membership_changed) << error.what();
                return false;
            }
        });
        if (node.rank() == 0) return;
        EXPECT_THAT(node.world().members(), ElementsAre(2, 3, 4));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 9);
    });
}

TEST_F(RecoveryPolicy, automatic_does_not_take_the_callback_of_failures) {
    form({.world = 4, .processes = {1}});
    recover_automatically();
    std::atomic<int> called = 0;
    node(0).failures().on_change([&](const std::vector<int>& failed) {
        EXPECT_THAT(failed, ElementsAre(1));
        ++called;
    });
    kill(1);
    on_nodes([](Node& node) {
        EXPECT_EQ(await_failures(node, 0).size(), 1U);
        EXPECT_THAT(node.world().members(), ElementsAre(0, 2, 3));
    });
    await("a call of the callback", [&] { return called != 0; });
    node(0).recover(Recovery::manual);
    close(0);
    EXPECT_EQ(called, 1);
}

TEST_F(RecoveryPolicy, manual_leaves_the_world_as_it_is_until_shrink) {
    form({.world = 4, .processes = {2}});
    kill(2);
    on_nodes([](Node& node) {
        EXPECT_THAT(await_failures(node, 0), ElementsAre(2));
        const Communicator world = node.world();
        EXPECT_THAT(world.members(), ElementsAre(0, 1, 2, 3)) << "nobody has called shrink()";
        const Error error = failure_of_sums(world);
        EXPECT_EQ(error.code(), Errc::membership_changed);
        EXPECT_EQ(error.rank(), 2);
        EXPECT_EQ(node.world().size(), 4);
        const Communicator shrunk = world.shrink();
        EXPECT_THAT(node.world().members(), ElementsAre(0, 1, 3));
        EXPECT_EQ(shrunk.all_reduce(node.rank(), sum).wait(), 4);
    });
}

TEST_F(RecoveryPolicy, manual_replaces_the_setting_automatic) {
    form({.world = 4, .processes = {2}, .settings = {{"recovery", "automatic"}}});
    on_nodes([](Node& node) { node.recover(Recovery::manual); });
    kill(2);
    on_nodes([](Node& node) {
        EXPECT_EQ(await_failures(node, 0).size(), 1U);
        EXPECT_EQ(node.world().size(), 4);
    });
}

TEST_F(RecoveryPolicy, abort_ends_every_rank_with_the_same_error) {
    form({.world = 4, .processes = {2}});
    on_nodes([](Node& node) { node.recover(Recovery::abort); });
    std::mutex mutex;
    std::vector<std::string> causes;
    std::vector<int> ranks;
    std::vector<int> codes;
    kill(2);
    on_nodes([&](Node& node) {
        const Communicator world = node.world();
        const Error error = abort_of(world);
        const std::scoped_lock lock(mutex);
        causes.push_back(error.cause());
        ranks.push_back(error.rank().value_or(-1));
        codes.push_back(error.abort_code().value_or(-1));
    });
    ASSERT_EQ(causes.size(), 3U);
    EXPECT_THAT(causes, Each(causes.front()));
    EXPECT_THAT(causes.front(), HasSubstr("rank 2 failed in epoch 2, and the recovery policy is "
                                          "abort"));
    EXPECT_THAT(ranks, Each(0));
    EXPECT_THAT(codes, Each(1));
}

TEST_F(RecoveryPolicy, abort_ends_the_process_of_the_lowest_rank_and_calls_of_the_others) {
    form({.world = 4, .processes = {0, 1, 2}});
    for (const int rank : {0, 1, 2}) tell(rank, "policy abort", "policy abort");
    node(3).recover(Recovery::abort);
    kill(2);
    EXPECT_EQ(process(0).wait(), 1) << "the default of on_abort is exit";
    const Error error = abort_of(node(3).world());
    EXPECT_THAT(error.cause(), HasSubstr("rank 2 failed in epoch 2"));
    tell(1, "sum_until_aborted", "error aborted: " + error.cause());
    const std::optional<Error> reported = seed().aborted();
    ASSERT_TRUE(reported.has_value());
    EXPECT_EQ(reported->cause(), error.cause());
}

}  // namespace
}  // namespace nexar::testing
