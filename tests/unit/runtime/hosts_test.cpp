// Ranks on several machines, simulated by several loopback addresses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <nexar/nexar.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/node_body.hpp"
#include "support/test_cluster.hpp"

namespace nexar {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::chrono::seconds kPatience(60);

class Hosts : public ::testing::Test {
protected:
    void SetUp() override {
        View view{.epoch = Epoch(1)};
        std::vector<std::shared_ptr<detail::NodeBody>> bodies;
        for (const std::string address : {"127.0.0.1:0", "127.0.0.2:0", "127.0.0.1:0"}) {
            const auto rank = static_cast<std::uint32_t>(bodies.size());
            bodies.push_back(
                detail::NodeBody::open(loop_, {.credentials = cluster_.node(rank),
                                               .listen = Address::parse(address).value()})
                    .value());
            view.members.push_back({.node = cluster_.node_id(rank),
                                    .incarnation = Incarnation(1),
                                    .rank = Rank(rank),
                                    .addresses = {bodies.back()->address()}});
            nodes_.emplace_back(bodies.back());
        }
        for (const auto& body : bodies) body->form(view);
        for (const auto& body : bodies) body->wait_formed(body->now() + kPatience).value();
    }

    /// The host of every rank; empty without a communicator.
    static std::vector<int> hosts(const std::optional<Communicator>& ranks) {
        std::vector<int> all;
        for (int rank = 0; ranks && rank < ranks->size(); ++rank) all.push_back(ranks->host(rank));
        return all;
    }

    ::nexar::testing::TestCluster cluster_;
    std::shared_ptr<runtime::Loop> loop_ = runtime::make_loop({}).value();
    std::vector<Node> nodes_;
};

TEST_F(Hosts, are_equal_on_all_ranks_and_collectives_run_across_them) {
    std::vector<Work<>> works;
    std::array<int, 3> values{1, 20, 300};
    for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
        Communicator world = nodes_[rank].world();
        EXPECT_THAT(hosts(world), ElementsAre(0, 1, 0));
        works.push_back(world.all_reduce(std::span(&values[rank], 1), sum));
    }
    for (Work<>& work : works) work.wait();
    EXPECT_THAT(values, ElementsAre(321, 321, 321));
}

TEST_F(Hosts, are_renumbered_in_a_subgroup) {
    const std::array<int, 2> apart{1, 2};
    const std::array<int, 2> together{2, 0};
    std::vector<std::vector<int>> of_two_machines;
    std::vector<std::vector<int>> of_one_machine;
    for (const Node& node : nodes_) {
        Communicator world = node.world();
        of_two_machines.push_back(hosts(world.subgroup(apart)));
        of_one_machine.push_back(hosts(world.subgroup(together)));
        EXPECT_THAT(hosts(world.duplicate()), ElementsAre(0, 1, 0));
    }
    EXPECT_THAT(of_two_machines, ElementsAre(IsEmpty(), ElementsAre(0, 1), ElementsAre(0, 1)));
    EXPECT_THAT(of_one_machine, ElementsAre(ElementsAre(0, 0), IsEmpty(), ElementsAre(0, 0)));
}

TEST_F(Hosts, can_serve_as_the_colours_of_a_split) {
    std::vector<std::vector<int>> made(nodes_.size());
    {
        std::vector<std::jthread> threads;
        for (std::size_t rank = 0; rank < nodes_.size(); ++rank) {
            threads.emplace_back([&, rank] {
                Communicator world = nodes_[rank].world();
                made[rank] = hosts(world.split(world.host(world.rank())));
            });
        }
    }
    EXPECT_THAT(made, ElementsAre(ElementsAre(0, 0), ElementsAre(0), ElementsAre(0, 0)));
}

TEST_F(Hosts, a_rank_that_does_not_exist_is_an_error) {
    try {
        (void)nodes_[0].world().host(3);
        FAIL();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::invalid_argument);
        EXPECT_THAT(error.what(), HasSubstr("there is no rank 3 in a communicator of 3"));
    }
}

}  // namespace
}  // namespace nexar
