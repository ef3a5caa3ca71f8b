// `nexar members` and `nexar members forget` with real processes and a state directory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "process/cluster_command_fixture.hpp"

namespace nexar {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(ClusterCommand, members_shows_the_view_and_who_is_connected) {
    EXPECT_THAT(nexar({"members", "--state", state_}).errors,
                HasSubstr("start `nexar seed` with this state directory"));
    auto seed = start_seed({"--state", state_});
    EXPECT_THAT(nexar({"members", "--state", state_}).output,
                HasSubstr("no cluster has formed; 0 of 2 ranks joined"));
    const std::string token = nexar({"token", "create", "--uses", "2", "--state", state_}).output;
    const auto joining = start_ranks(2, token);
    for (const auto& one : joining) ASSERT_TRUE(one->writes("rank ")) << one->errors();
    await_peers(" us");
    EXPECT_THAT(nexar({"members", "--state", state_}).output,
                AllOf(HasSubstr("epoch 1; 2 members; witness: this seed; next rank 2"),
                      HasSubstr("127.0.0.1"), HasSubstr("yes")));
    const auto json = nlohmann::json::parse(nexar({"members", "--json", "--state", state_}).output);
    EXPECT_EQ(json.at("epoch"), 1);
    EXPECT_EQ(json.at("next_rank"), 2);
    EXPECT_EQ(json.at("witness"), json.at("seed"));
    ASSERT_EQ(json.at("members").size(), 2U);
    EXPECT_EQ(json.at("members")[1].at("rank"), 1);
    EXPECT_EQ(json.at("members")[1].at("connected"), true);
    EXPECT_TRUE(json.at("joining").empty());
    seed->send(SIGKILL);
    seed->wait();
    const Outcome without = nexar({"members", "--state", state_});
    EXPECT_THAT(without.errors, HasSubstr("no seed is running on"));
    EXPECT_THAT(without.output, HasSubstr("unknown"));
    end(joining);
}

TEST_F(ClusterCommand, lost_members_are_forgotten_only_while_the_seed_is_stopped) {
    auto seed = start_seed({"--state", state_});
    std::string token = nexar({"token", "create", "--uses", "2", "--state", state_}).output;
    auto joining = start_ranks(2, token);
    for (const auto& one : joining) ASSERT_TRUE(one->writes("rank ")) << one->errors();
    const auto forget = [&](const std::vector<std::string>& ranks) {
        std::vector<std::string> arguments = {"members", "forget"};
        arguments.insert(arguments.end(), ranks.begin(), ranks.end());
        arguments.insert(arguments.end(), {"--state", state_});
        return nexar(arguments);
    };
    EXPECT_THAT(forget({"0"}).errors, HasSubstr("the seed is running"));
    seed->send(SIGKILL);
    seed->wait();
    joining.clear();  // kills both
    EXPECT_THAT(forget({"0", "7"}).errors, HasSubstr("no member with rank 7; its ranks are: 0 1"));
    EXPECT_THAT(forget({"x"}).errors, HasSubstr("\"x\" is not a whole number"));
    const Outcome forgotten = forget({"0", "1"});
    EXPECT_EQ(forgotten.exit_code, 0) << forgotten.errors;
    EXPECT_THAT(forgotten.output, HasSubstr("all members are forgotten"));
    seed = start_seed({"--state", state_});
    token = nexar({"token", "create", "--uses", "2", "--state", state_}).output;
    joining = start_ranks(2, token);
    for (const auto& one : joining) ASSERT_TRUE(one->writes("rank ")) << one->errors();
    EXPECT_THAT(nexar({"members", "--state", state_}).output,
                HasSubstr("epoch 1048578; 2 members"));
    end(joining);
}

}  // namespace
}  // namespace nexar
