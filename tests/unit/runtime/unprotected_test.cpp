#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nexar/nexar.hpp>
#include <numeric>
#include <vector>

#include "runtime/node_body.hpp"
#include "support/test_cluster.hpp"

namespace nexar {
namespace {

using detail::NodeBody;
using ::testing::HasSubstr;

constexpr std::chrono::seconds kUnprotectedPatience(60);

TEST(Unprotected, unprotected_nodes_exchange_messages_of_all_sizes) {
    auto nodes = local_cluster(2, {.unprotected = true});
    Communicator from = nodes[0].world();
    Communicator to = nodes[1].world();
    for (const std::size_t count : {0U, 2U, 4096U, 20'000U, 1'000'000U}) {
        std::vector<std::uint32_t> sent(count);
        std::iota(sent.begin(), sent.end(), 11U);
        std::vector<std::uint32_t> got(count);
        auto receive = to.recv(std::span(got), 0, 1);
        auto send = from.send(std::span(sent), 1, 1);
        ASSERT_TRUE(receive.wait_for(kUnprotectedPatience));
        EXPECT_EQ(receive.wait().bytes, count * sizeof(std::uint32_t));
        send.wait();
        EXPECT_EQ(got, sent);
    }
}

/// Two nodes of one cluster; rank 1 dials.
class OneSided : public ::testing::TestWithParam<bool> {
protected:
    std::shared_ptr<NodeBody> open(std::uint64_t index, bool unprotected) {
        return NodeBody::open(loop_, {.credentials = cluster_.node(index),
                                      .listen = Address::parse("127.0.0.1:0").value(),
                                      .options = {.unprotected = unprotected}})
            .value();
    }

    ::nexar::testing::TestCluster cluster_;
    std::shared_ptr<runtime::Loop> loop_ = runtime::make_loop({}).value();
};

TEST_P(OneSided, link_is_refused_and_the_dialer_learns_the_reason) {
    const bool dialer_unprotected = GetParam();
    const auto server = open(0, !dialer_unprotected);
    const auto dialer = open(1, dialer_unprotected);
    const Node server_node(server);
    const Node dialer_node(dialer);
    const View view{.epoch = Epoch(1),
                    .members = {{.node = cluster_.node_id(0),
                                 .incarnation = Incarnation(1),
                                 .rank = Rank(0),
                                 .addresses = {server->address()}},
                                {.node = cluster_.node_id(1),
                                 .incarnation = Incarnation(1),
                                 .rank = Rank(1),
                                 .addresses = {dialer->address()}}}};
    server->form(view);
    dialer->form(view);
    const auto outcome = dialer->wait_formed(dialer->now() + std::chrono::milliseconds(500));
    ASSERT_FALSE(outcome);
    EXPECT_EQ(outcome.error().code(), Errc::timed_out) << outcome.error().what();
    EXPECT_THAT(outcome.error().what(), HasSubstr(server->address().text()));
    EXPECT_THAT(outcome.error().what(), HasSubstr("protection=none"));

    // The server is unaffected and reports which rank is missing.
    const auto missing = server->wait_formed(server->now());
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code(), Errc::timed_out);
    EXPECT_THAT(missing.error().what(), HasSubstr("not connected to 1 of 1 other members; rank 1"));
}

INSTANTIATE_TEST_SUITE_P(side, OneSided, ::testing::Bool(), [](const auto& side) {
    return side.param ? "the_dialer_is_unprotected" : "the_server_is_unprotected";
});

}  // namespace
}  // namespace nexar
