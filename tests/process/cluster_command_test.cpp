// `nexar seed`, `nexar token` and `nexar peers` with real processes and a state directory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "process/program.hpp"
#include "process/running_program.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

class ClusterCommand : public testing::Test {
protected:
    ClusterCommand() { state_ = (home_ / "state").string(); }

    std::vector<std::string> environment() const { return {"HOME=" + home_.path()}; }

    Outcome nexar(std::vector<std::string> arguments) const {
        return run_program(NEXAR_COMMAND, std::move(arguments), environment());
    }

    std::unique_ptr<RunningProgram> start_seed(std::vector<std::string> more = {}) const {
        std::vector<std::string> arguments = {"seed", "--listen", "127.0.0.1:0", "--world", "2"};
        arguments.insert(arguments.end(), more.begin(), more.end());
        auto seed = std::make_unique<RunningProgram>(NEXAR_COMMAND, arguments, environment());
        EXPECT_TRUE(seed->writes("let processes in with:")) << seed->errors();
        return seed;
    }

    TempDirectory home_;
    std::string state_;
};

TEST_F(ClusterCommand, a_token_is_made_listed_and_revoked) {
    const auto seed = start_seed({"--state", state_});
    const Outcome made =
        nexar({"token", "create", "--uses", "3", "--ttl", "10m", "--state", state_});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    EXPECT_THAT(made.output, MatchesRegex("nexar1\\.[0-9a-f]+\\.[0-9a-f]+\\.[0-9a-f]+\\.[0-9a-f]+@"
                                          "127\\.0\\.0\\.1:[0-9]+\n"));
    const std::string id = made.output.substr(7, 32);
    const std::string secret = made.output.substr(40, 64);

    const Outcome list = nexar({"token", "list", "--state", state_});
    EXPECT_THAT(list.output, AllOf(HasSubstr(id), HasSubstr("good"), HasSubstr("0 of 3"),
                                   Not(HasSubstr(secret))));
    EXPECT_EQ(nexar({"token", "revoke", id.substr(0, 8), "--state", state_}).exit_code, 0);
    const auto json =
        nlohmann::json::parse(nexar({"token", "list", "--json", "--state", state_}).output);
    ASSERT_EQ(json.size(), 1U);
    EXPECT_EQ(json[0].at("id"), id);
    EXPECT_EQ(json[0].at("state"), "revoked");
    EXPECT_EQ(json[0].at("uses"), 3);
}

TEST_F(ClusterCommand, what_a_seed_keeps_is_its_owners_only_and_is_found_again) {
    std::string first;
    {
        const auto seed = start_seed();
        first = nexar({"token", "create"}).output;
        seed->send(SIGTERM);
        EXPECT_EQ(seed->wait(), 0) << seed->errors();
    }
    const fs::path kept = home_ / ".local/state/nexar";
    ASSERT_TRUE(fs::exists(kept));
    EXPECT_EQ(fs::status(kept).permissions(), fs::perms::owner_all);
    for (const auto& file : fs::directory_iterator(kept)) {
        EXPECT_EQ(fs::status(file).permissions() & (fs::perms::group_all | fs::perms::others_all),
                  fs::perms::none)
            << file.path();
    }
    const auto again = start_seed();
    const std::string second = nexar({"token", "create"}).output;
    ASSERT_GT(first.size(), 170U);
    EXPECT_EQ(first.substr(105, 64), second.substr(105, 64)) << "the authority is the same";
    EXPECT_NE(first.substr(40, 64), second.substr(40, 64)) << "the secret is not";
}

TEST_F(ClusterCommand, what_cannot_be_done_is_said_with_what_to_do) {
    const auto failure = [&](std::vector<std::string> arguments) {
        const Outcome outcome = nexar(std::move(arguments));
        EXPECT_NE(outcome.exit_code, 0);
        EXPECT_EQ(outcome.output, "");
        return outcome.errors;
    };
    EXPECT_THAT(failure({"token", "create", "--state", state_}), HasSubstr("nexar token create: "));
    EXPECT_THAT(failure({"peers", "--state", state_}), HasSubstr("is a seed running on it"));
    EXPECT_THAT(failure({"token", "revoke", "00", "--state", state_}),
                HasSubstr("no token has an id that begins with \"00\""));
    EXPECT_THAT(failure({"token", "create", "--uses", "0"}), HasSubstr("--uses"));
    EXPECT_THAT(failure({"token", "create", "--ttl", "soon", "--state", state_}),
                HasSubstr("soon"));
    EXPECT_THAT(failure({"token"}), HasSubstr("A subcommand is required"));
    EXPECT_THAT(failure({"seed"}), HasSubstr("--world is required"));
    EXPECT_THAT(failure({"seed", "--world", "2", "--listen", "nowhere"}), HasSubstr("nowhere"));
}

TEST_F(ClusterCommand, processes_started_by_hand_join_with_a_token_and_are_shown) {
    const auto seed = start_seed({"--state", state_});
    const Outcome made = nexar({"token", "create", "--uses", "2", "--state", state_});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    auto variables = environment();
    variables.push_back("NEXAR_JOIN=" + made.output.substr(0, made.output.size() - 1));
    RunningProgram one(NEXAR_JOINING_RANK, {}, variables);
    RunningProgram two(NEXAR_JOINING_RANK, {}, variables);
    EXPECT_EQ(one.wait(), 0) << one.errors();
    EXPECT_EQ(two.wait(), 0) << two.errors();
    EXPECT_THAT(one.output() + two.output(),
                AllOf(HasSubstr("rank 0 of 2 got 1001\n"), HasSubstr("rank 1 of 2 got 1000\n")));
    EXPECT_THAT(nexar({"token", "list", "--state", state_}).output,
                AllOf(HasSubstr("used up"), HasSubstr("2 of 2")));
    // The seed gathers what members tell before it writes it down.
    Outcome peers;
    for (int i = 0; i < 1000 && peers.exit_code != 0; ++i) {
        peers = nexar({"peers", "--state", state_});
    }
    EXPECT_THAT(peers.output, AllOf(HasSubstr("rank"), HasSubstr("127.0.0.1"), HasSubstr(" us")))
        << peers.errors;
    EXPECT_TRUE(nlohmann::json::accept(nexar({"peers", "--json", "--state", state_}).output));
}

TEST_F(ClusterCommand, two_seeds_cannot_keep_the_same_state) {
    const auto seed = start_seed({"--state", state_});
    const Outcome second =
        nexar({"seed", "--listen", "127.0.0.1:0", "--world", "2", "--state", state_});
    EXPECT_EQ(second.exit_code, 1);
    EXPECT_THAT(second.errors, HasSubstr(state_));
}

TEST_F(ClusterCommand, every_command_explains_itself_with_an_example) {
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {}, {"run"}, {"seed"}, {"token"}, {"token", "create"}, {"peers"}, {"config"}}) {
        auto arguments = command;
        arguments.emplace_back("--help");
        const Outcome outcome = nexar(arguments);
        EXPECT_EQ(outcome.exit_code, 0);
        EXPECT_THAT(outcome.output, AllOf(HasSubstr("Usage: nexar"), HasSubstr("Examples:\n  ")));
        EXPECT_THAT(outcome.output, Not(HasSubstr("run-part"))) << "it is not for users";
    }
    EXPECT_EQ(nexar({"version"}).output, nexar({"--version"}).output);
}

}  // namespace
}  // namespace nexar
