// Communicators that continue after members have left. All nodes are in one process, and a member
// leaves by closing its node.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <nexar/nexar.hpp>
#include <thread>
#include <vector>

namespace nexar {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

/// Runs `body(rank)` in a thread for each of these ranks.
template <class Body>
void on_ranks(const std::vector<int>& ranks, Body body) {
    std::vector<std::jthread> threads;
    threads.reserve(ranks.size());
    for (const int rank : ranks) threads.emplace_back([&body, rank] { body(rank); });
}

Communicator world_of(const std::vector<Node>& nodes, int rank) {
    return nodes[static_cast<std::size_t>(rank)].world();
}

struct Who {
    int callee = 0;
    int caller = 0;

    friend bool operator==(const Who&, const Who&) = default;
};

template <class T>
Errc code_of(Work<T> work) {
    const auto result = work.result();
    return result ? Errc{} : result.error().code();
}

Errc code_of_adding(const Communicator& communicator, const std::vector<int>& members) {
    try {
        static_cast<void>(communicator.rebuild_adding(members));
    } catch (const Error& error) {
        return error.code();
    }
    return Errc{};
}

TEST(Members, are_known_by_their_rank_in_the_cluster) {
    const std::vector<Node> nodes = local_cluster(3);
    for (int rank = 0; rank < 3; ++rank) {
        const Node& node = nodes[static_cast<std::size_t>(rank)];
        EXPECT_EQ(node.rank(), rank);
        EXPECT_THAT(node.members(), ElementsAre(0, 1, 2));
        EXPECT_THAT(node.world().members(), ElementsAre(0, 1, 2));
        EXPECT_THAT(node.failures().list(), IsEmpty());
    }
}

TEST(Members, a_node_that_closes_leaves_the_view_of_the_others) {
    std::vector<Node> nodes = local_cluster(4);
    const std::uint64_t epoch = nodes[0].epoch();
    nodes[2].close();
    for (const int rank : {0, 1, 3}) {
        const Node& node = nodes[static_cast<std::size_t>(rank)];
        // close() waits only 100 ms for the others.
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        while (node.members().size() != 3U && std::chrono::steady_clock::now() < deadline) {
            std::this_thread::yield();
        }
        EXPECT_THAT(node.members(), ElementsAre(0, 1, 3));
        EXPECT_GT(node.epoch(), epoch);
        EXPECT_THAT(node.failures().list(), IsEmpty()) << "it left in good order";
    }
}

TEST(Agree, gives_every_rank_the_flags_that_all_have_set) {
    const std::vector<Node> nodes = local_cluster(3);
    on_ranks({0, 1, 2}, [&](int rank) {
        const std::array<std::uint64_t, 3> flags{0b1110, 0b0111, 0b1111};
        const Agreed agreed =
            world_of(nodes, rank).agree(flags.at(static_cast<std::size_t>(rank))).wait();
        EXPECT_EQ(agreed.flags, 0b0110U);
        EXPECT_THAT(agreed.lost, IsEmpty());
    });
}

TEST(Agree, names_the_ranks_that_are_gone) {
    std::vector<Node> nodes = local_cluster(4);
    nodes[1].close();
    on_ranks({0, 2, 3}, [&](int rank) {
        EXPECT_THAT(world_of(nodes, rank).agree().wait().lost, ElementsAre(1));
    });
}

TEST(Agree, different_calls_fail_on_all_ranks) {
    const std::vector<Node> nodes = local_cluster(2);
    on_ranks({0, 1}, [&](int rank) {
        const Communicator world = world_of(nodes, rank);
        if (rank == 0) {
            EXPECT_EQ(code_of(world.agree()), Errc::invalid_argument);
        } else {
            EXPECT_THROW(static_cast<void>(world.grow()), Error);
        }
    });
}

TEST(Agree, fails_if_another_rank_shrinks_and_the_shrink_is_repeated) {
    const std::vector<Node> nodes = local_cluster(2);
    on_ranks({0, 1}, [&](int rank) {
        const Communicator world = world_of(nodes, rank);
        if (rank == 0) {
            EXPECT_EQ(code_of(world.agree()), Errc::membership_changed);
        }
        EXPECT_EQ(world.shrink().all_reduce(1, sum).wait(), 2);
    });
}

TEST(Shrink, keeps_the_order_of_the_survivors_and_works_repeatedly) {
    std::vector<Node> nodes = local_cluster(5);
    std::vector<int> alive{0, 1, 2, 3, 4};
    for (const int victim : {3, 0}) {
        nodes[static_cast<std::size_t>(victim)].close();
        std::erase(alive, victim);
        on_ranks(alive, [&](int rank) {
            const Communicator before = world_of(nodes, rank);
            const Communicator world = before.shrink();
            EXPECT_EQ(world.size(), static_cast<int>(alive.size()));
            EXPECT_THAT(world.members(), ::testing::ElementsAreArray(alive));
            int expected = 0;
            for (const int member : alive) expected += member;
            EXPECT_EQ(world.all_reduce(rank, sum).wait(), expected);
            EXPECT_EQ(world_of(nodes, rank).size(), world.size())
                << "it takes the place of the node's world";
        });
    }
}

TEST(Shrink, works_on_communicators_made_from_the_world) {
    std::vector<Node> nodes = local_cluster(4);
    std::vector<std::optional<Communicator>> halves(4);
    on_ranks({0, 1, 2, 3}, [&](int rank) {
        halves[static_cast<std::size_t>(rank)] =
            world_of(nodes, rank).split(static_cast<std::uint32_t>(rank % 2));
    });
    nodes[2].close();
    on_ranks({0, 1, 3}, [&](int rank) {
        const Communicator half = halves[static_cast<std::size_t>(rank)]->shrink();
        EXPECT_EQ(half.size(), rank == 0 ? 1 : 2);
        EXPECT_EQ(half.all_reduce(1, sum).wait(), half.size());
        EXPECT_EQ(world_of(nodes, rank).size(), 4) << "only the halves were shrunk";
    });
    halves.clear();
}

TEST(Revoke, ends_pending_and_later_operations_on_all_ranks) {
    const std::vector<Node> nodes = local_cluster(3);
    std::vector<int> value(3);
    Work<Status> pending = world_of(nodes, 1).recv(value, 0, 7);
    world_of(nodes, 2).revoke();
    EXPECT_EQ(code_of(std::move(pending)), Errc::revoked);
    on_ranks({0, 1, 2}, [&](int rank) {
        const Communicator world = world_of(nodes, rank);
        while (code_of(world.all_reduce(1, sum)) != Errc::revoked) std::this_thread::yield();
        const Communicator again = world.shrink();
        EXPECT_EQ(again.size(), 3);
        EXPECT_EQ(again.all_reduce(1, sum).wait(), 3);
    });
}

TEST(Rebuild, excludes_ranks_that_do_not_take_part) {
    const std::vector<Node> nodes = local_cluster(4);
    on_ranks({0, 2, 3}, [&](int rank) {
        const Communicator rest = world_of(nodes, rank).rebuild_excluding(std::vector{1});
        EXPECT_THAT(rest.members(), ElementsAre(0, 2, 3));
        EXPECT_EQ(rest.all_reduce(rank, sum).wait(), 5);
    });
    EXPECT_THROW(static_cast<void>(world_of(nodes, 1).rebuild_excluding(std::vector{1})), Error);
    EXPECT_THROW(static_cast<void>(world_of(nodes, 1).rebuild_excluding(std::vector{9})), Error);
}

TEST(Rebuild, does_not_add_a_rank_that_was_excluded) {
    const std::vector<Node> nodes = local_cluster(4);
    on_ranks({0, 2, 3}, [&](int rank) {
        const Communicator rest = world_of(nodes, rank).rebuild_excluding(std::vector{1});
        EXPECT_EQ(code_of_adding(rest, {1}), Errc::invalid_argument);
        EXPECT_EQ(code_of_adding(rest.duplicate(), {1}), Errc::invalid_argument);
        EXPECT_EQ(rest.all_reduce(rank, sum).wait(), 5) << "nothing has happened";
    });
}

TEST(Rebuild, does_not_add_a_rank_of_the_world_to_a_part_of_it) {
    const std::vector<Node> nodes = local_cluster(3);
    on_ranks({0, 1, 2}, [&](int rank) {
        const auto part = world_of(nodes, rank).subgroup(std::vector{0, 1});
        if (!part) return;
        EXPECT_EQ(code_of_adding(*part, {2}), Errc::invalid_argument);
        EXPECT_EQ(part->all_reduce(1, sum).wait(), 2) << "nothing has happened";
    });
}

TEST(Rebuild, adds_only_members_that_are_not_in_the_communicator) {
    const std::vector<Node> nodes = local_cluster(3);
    const Communicator world = world_of(nodes, 0);
    EXPECT_EQ(code_of_adding(world, {0}), Errc::invalid_argument) << "the caller itself";
    EXPECT_EQ(code_of_adding(world, {2}), Errc::invalid_argument);
    EXPECT_EQ(code_of_adding(world, {7, 7}), Errc::invalid_argument);
    EXPECT_EQ(code_of_adding(world, {-1}), Errc::invalid_argument);
    on_ranks({0, 1, 2}, [&](int rank) {
        EXPECT_EQ(world_of(nodes, rank).all_reduce(1, sum).wait(), 3) << "nothing has happened";
    });
}

TEST(ElasticCheckpoint, without_changes_returns_nothing) {
    const std::vector<Node> nodes = local_cluster(3);
    on_ranks({0, 1, 2}, [&](int rank) {
        for (int i = 0; i < 10; ++i) {
            EXPECT_FALSE(nodes[static_cast<std::size_t>(rank)].elastic_checkpoint().has_value());
        }
    });
}

TEST(ElasticCheckpoint, lets_a_rank_leave) {
    std::vector<Node> nodes = local_cluster(4);
    on_ranks({0, 1, 2, 3}, [&](int rank) {
        const Node& node = nodes[static_cast<std::size_t>(rank)];
        if (rank == 1) node.leave();
        const auto change = node.elastic_checkpoint();
        ASSERT_TRUE(change.has_value());
        EXPECT_THAT(change->left, ElementsAre(1));
        EXPECT_THAT(change->lost, IsEmpty());
        EXPECT_EQ(change->left_here, rank == 1);
        EXPECT_EQ(change->old_world.size(), 4);
        if (rank == 1) {
            EXPECT_EQ(change->new_world.size(), 1);
        } else {
            EXPECT_EQ(change->new_world.all_reduce(1, sum).wait(), 3);
        }
    });
    nodes[1].close();
    on_ranks({0, 2, 3}, [&](int rank) {
        EXPECT_EQ(world_of(nodes, rank).all_reduce(1, sum).wait(), 3) << "the new world goes on";
    });
}

TEST(ElasticCheckpoint, does_not_take_back_a_rank_that_was_excluded) {
    const std::vector<Node> nodes = local_cluster(4);
    on_ranks({0, 1, 2}, [&](int rank) {
        const Node& node = nodes[static_cast<std::size_t>(rank)];
        static_cast<void>(node.world().rebuild_excluding(std::vector{3}));
        EXPECT_FALSE(node.elastic_checkpoint().has_value()) << "nobody has joined";
        const Communicator grown = node.world().grow();
        EXPECT_THAT(grown.members(), ElementsAre(0, 1, 2));
        EXPECT_EQ(grown.all_reduce(1, sum).wait(), 3);
    });
}

TEST(ElasticCheckpoint, lets_all_ranks_leave) {
    const std::vector<Node> nodes = local_cluster(3);
    on_ranks({0, 1, 2}, [&](int rank) {
        const Node& node = nodes[static_cast<std::size_t>(rank)];
        node.leave();
        const auto change = node.elastic_checkpoint();
        ASSERT_TRUE(change.has_value());
        EXPECT_TRUE(change->left_here);
        EXPECT_THAT(change->left, ElementsAre(0, 1, 2));
        EXPECT_EQ(change->new_world.size(), 1);
    });
}

TEST(Failures, a_wait_ends_when_the_node_closes_or_it_is_cancelled) {
    std::vector<Node> nodes = local_cluster(2);
    Work<std::vector<int>> cancelled = nodes[0].failures().longer_than(0);
    cancelled.cancel();
    EXPECT_EQ(code_of(std::move(cancelled)), Errc::cancelled);
    Work<std::vector<int>> closed = nodes[0].failures().longer_than(0);
    EXPECT_FALSE(closed.done());
    nodes[0].close();
    EXPECT_EQ(code_of(std::move(closed)), Errc::closed);
}

TEST(CommunicatorCall, names_the_callee_by_its_rank_in_the_communicator) {
    std::vector<Node> nodes = local_cluster(3);
    std::vector<Served> served;
    for (const Node& node : nodes) {
        served.push_back(node.serve(
            "who", [rank = node.rank()](const Call& call) { return Who{rank, call.caller}; }));
    }
    nodes[0].close();
    on_ranks({1, 2}, [&](int rank) {
        const Node& node = nodes[static_cast<std::size_t>(rank)];
        const Communicator pair = node.world().shrink();
        const int other = 3 - rank;
        const auto by_rank = pair.call<Who>(1 - pair.rank(), "who").wait();
        EXPECT_EQ(by_rank, (Who{other, rank}));
        const auto by_member = node.call<Who>(other, "who").wait();
        EXPECT_EQ(by_member, (Who{other, rank}));
        EXPECT_EQ(code_of(node.call<int>(0, "who")), Errc::link_closed) << "rank 0 has left";
        EXPECT_THROW(static_cast<void>(node.call<int>(7, "who")), Error);
    });
    served.clear();
}

}  // namespace
}  // namespace nexar
