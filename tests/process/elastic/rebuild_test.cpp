// Which members rebuild_adding() takes in.

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "process/elastic/elastic_cluster.hpp"

namespace nexar::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class Rebuilding : public ElasticCluster {
protected:
    /// Runs `body` for each of these nodes.
    void on_ranks(const std::vector<int>& ranks, const std::function<void(Node&)>& body) {
        on_nodes([&](Node& node) {
            if (std::ranges::find(ranks, node.rank()) != ranks.end()) body(node);
        });
    }

    static void exclude(const Node& node, int rank) {
        node.world().rebuild_excluding(std::vector{rank});
    }
    static void add(const Node& node, int member) {
        node.world().rebuild_adding(std::vector{member});
    }

    /// Adding this member fails at once, and the world goes on as it is.
    static void expect_refused(const Node& node, int member, int size) {
        const Error error = error_of([&] {
            add(node, member);
            return 0;
        });
        EXPECT_EQ(error.code(), Errc::invalid_argument) << error.what();
        EXPECT_EQ(error.rank(), member);
        EXPECT_THAT(error.what(), HasSubstr("member " + std::to_string(member) +
                                            " cannot be added: it was left out"));
        EXPECT_EQ(node.world().all_reduce(1, sum).wait(), size);
    }
};

TEST_F(Rebuilding, refuses_a_member_that_was_excluded_until_its_process_has_joined_again) {
    form({.world = 3});
    on_ranks({0, 2}, [](Node& node) {
        exclude(node, 1);
        expect_refused(node, 1, 2);
    });
    close(1);
    auto joining = join_soon();
    await_members({0, 2, 3});
    on_ranks({0, 2}, [](Node& node) { add(node, 3); });
    keep(joining);
    on_nodes([](Node& node) {
        EXPECT_THAT(node.world().members(), ElementsAre(0, 2, 3));
        EXPECT_EQ(node.world().all_reduce(node.rank(), sum).wait(), 5);
    });
}

TEST_F(Rebuilding, refuses_a_member_that_was_added_and_excluded) {
    form({.world = 2});
    auto joining = join_soon();
    await_members({0, 1, 2});
    on_nodes([](Node& node) { add(node, 2); });
    EXPECT_EQ(keep(joining).world().size(), 3);
    on_ranks({0, 1}, [](Node& node) {
        exclude(node, 2);
        expect_refused(node, 2, 2);
    });
}

TEST_F(Rebuilding, member_that_has_joined_since_also_refuses_one_that_was_excluded_before) {
    form({.world = 3});
    on_ranks({0, 2}, [](Node& node) { exclude(node, 1); });
    auto joining = join_soon();
    await_members({0, 1, 2, 3});
    on_ranks({0, 2}, [](Node& node) { add(node, 3); });
    keep(joining);
    on_ranks({0, 2, 3}, [](Node& node) { expect_refused(node, 1, 3); });
}

TEST_F(Rebuilding, refuses_a_member_that_it_has_passed_over) {
    form({.world = 2});
    auto first = join_soon();
    await_members({0, 1, 2});
    auto second = join_soon();
    await_members({0, 1, 2, 3});
    on_nodes([](Node& node) {
        add(node, 3);
        EXPECT_EQ(node.world().size(), 3);
    });
    keep(second);
    on_nodes([](Node& node) { expect_refused(node, 2, 3); });
    await_value(first).close();
}

}  // namespace
}  // namespace nexar::testing
