// `nexar seed`, `nexar token` and `nexar peers` with real processes and a state directory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "process/cluster_command_fixture.hpp"

namespace nexar {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

TEST_F(ClusterCommand, a_token_is_created_listed_and_revoked) {
    const auto seed = start_seed({"--state", state_});
    const Outcome made =
        nexar({"token", "create", "--uses", "3", "--ttl", "10m", "--state", state_});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    EXPECT_THAT(made.output, MatchesRegex("nexar1\\.[0-9a-f]+\\.[0-9a-f]+\\.[0-9a-f]+\\.[0-9a-f]+@"
                                          "127\\.0\\.0\\.1:[0-9]+\n"));
    const std::string id = made.output.substr(7, 32);
    const std::string secret = made.output.substr(40, 64);

    const Outcome list = nexar({"token", "list", "--state", state_});
    EXPECT_THAT(list.output, AllOf(HasSubstr(id), HasSubstr("valid"), HasSubstr("0 of 3"),
                                   Not(HasSubstr(secret))));
    EXPECT_EQ(nexar({"token", "revoke", id.substr(0, 8), "--state", state_}).exit_code, 0);
    const auto json =
        nlohmann::json::parse(nexar({"token", "list", "--json", "--state", state_}).output);
    ASSERT_EQ(json.size(), 1U);
    EXPECT_EQ(json[0].at("id"), id);
    EXPECT_EQ(json[0].at("state"), "revoked");
    EXPECT_EQ(json[0].at("uses"), 3);
}

TEST_F(ClusterCommand, a_seed_prints_the_number_of_ranks_in_singular_and_plural) {
    EXPECT_THAT(start_seed()->output(), HasSubstr("seed for 2 ranks at "));
    RunningProgram alone(NEXAR_COMMAND, {"seed", "--listen", "127.0.0.1:0", "--world", "1"},
                         {"HOME=" + home_.path() + "/other"});
    EXPECT_TRUE(alone.writes("seed for 1 rank at ")) << alone.errors();
}

TEST_F(ClusterCommand, seed_state_is_private_to_its_owner_and_survives_a_restart) {
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

TEST_F(ClusterCommand, errors_say_what_to_do) {
    const auto failure = [&](std::vector<std::string> arguments) {
        const Outcome outcome = nexar(std::move(arguments));
        EXPECT_NE(outcome.exit_code, 0);
        EXPECT_EQ(outcome.output, "");
        return outcome.errors;
    };
    EXPECT_THAT(failure({"token", "create", "--state", state_}), HasSubstr("nexar token create: "));
    EXPECT_THAT(failure({"peers", "--state", state_}),
                HasSubstr("start `nexar seed` with this state directory"));
    EXPECT_THAT(failure({"token", "revoke", "00", "--state", state_}),
                HasSubstr("no token has an id that begins with \"00\""));
    EXPECT_THAT(failure({"token", "create", "--uses", "0"}), HasSubstr("--uses"));
    EXPECT_THAT(failure({"token", "create", "--ttl", "soon", "--state", state_}),
                HasSubstr("soon"));
    EXPECT_THAT(failure({"token"}), HasSubstr("A subcommand is required"));
    EXPECT_THAT(failure({"seed"}), HasSubstr("--world is required"));
    EXPECT_THAT(failure({"seed", "--world", "2", "--listen", "nowhere"}), HasSubstr("nowhere"));
}

TEST_F(ClusterCommand, processes_started_by_hand_join_with_a_token_and_are_listed) {
    const auto seed = start_seed({"--state", state_});
    const Outcome made = nexar({"token", "create", "--uses", "2", "--state", state_});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    const auto joining = start_ranks(2, made.output);
    ASSERT_TRUE(joining[0]->writes("rank ")) << joining[0]->errors();
    ASSERT_TRUE(joining[1]->writes("rank ")) << joining[1]->errors();
    EXPECT_THAT(joining[0]->output() + joining[1]->output(),
                AllOf(HasSubstr("rank 0 of 2 got 1001\n"), HasSubstr("rank 1 of 2 got 1000\n")));
    EXPECT_THAT(nexar({"token", "list", "--state", state_}).output,
                AllOf(HasSubstr("used up"), HasSubstr("2 of 2")));
    EXPECT_THAT(await_peers(" us"), AllOf(HasSubstr("2 of 2 joined\n"), HasSubstr("127.0.0.1")));
    EXPECT_TRUE(nlohmann::json::accept(nexar({"peers", "--json", "--state", state_}).output));
    end(joining);
}

TEST_F(ClusterCommand, peers_lists_present_members_and_none_that_left) {
    auto seed = start_seed({"--state", state_});
    EXPECT_THAT(await_peers("0 of 2 joined; waiting for ranks 0, 1\n"),
                Not(HasSubstr("127.0.0.1")));
    const std::string token = nexar({"token", "create", "--uses", "3", "--state", state_}).output;
    auto joining = start_ranks(2, token);
    for (const auto& one : joining) ASSERT_TRUE(one->writes("rank ")) << one->errors();
    await_peers(" us");

    // One member of the formed world leaves, then the other.
    const bool first_is_0 = joining[0]->output().starts_with("rank 0");
    joining[0]->close_input();
    EXPECT_EQ(joining[0]->wait(), 0) << joining[0]->errors();
    const std::string half = await_peers("1 member in epoch 2\n");
    EXPECT_THAT(half, AllOf(HasSubstr("\n" + std::string(first_is_0 ? "1" : "0") + " "),
                            HasSubstr(" yes "), Not(HasSubstr(" us"))));
    joining[1]->close_input();
    EXPECT_EQ(joining[1]->wait(), 0) << joining[1]->errors();
    EXPECT_THAT(await_peers("0 of 2 joined; waiting for ranks 0, 1\n"),
                Not(HasSubstr("127.0.0.1")));

    // The next world waits for its members.
    joining = start_ranks(1, token);
    const std::string waiting = await_peers("1 of 2 joined; waiting for rank 1\n");
    EXPECT_THAT(waiting, AllOf(HasSubstr("127.0.0.1"), Not(HasSubstr(" us"))));

    seed->send(SIGKILL);
    seed->wait();
    EXPECT_THAT(nexar({"peers", "--state", state_}).errors, HasSubstr("no seed is running on"));
}

TEST_F(ClusterCommand, a_seed_killed_during_startup_leaves_a_usable_directory) {
    for (int round = 0; round < 8; ++round) {
        const std::string state = state_ + std::to_string(round);
        {
            RunningProgram seed(
                NEXAR_COMMAND,
                {"seed", "--listen", "127.0.0.1:0", "--world", "1", "--state", state},
                environment());
            const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
            while (!fs::exists(state + "/ca.key")) {
                ASSERT_LT(std::chrono::steady_clock::now(), deadline) << seed.errors();
            }
            seed.send(SIGKILL);
            EXPECT_EQ(seed.wait(), 128 + SIGKILL);
        }
        std::ofstream(state + "/seed.4711.new")
            << "half";  // as an earlier killed seed may leave it
        std::vector<fs::path> unfinished;
        for (const auto& file : fs::directory_iterator(state)) {
            if (file.path().extension() == ".new") unfinished.push_back(file.path());
        }
        const auto again = start_seed({"--state", state});
        EXPECT_EQ(nexar({"token", "create", "--state", state}).exit_code, 0);
        for (const fs::path& file : unfinished) EXPECT_FALSE(fs::exists(file)) << file;
        again->send(SIGTERM);
        EXPECT_EQ(again->wait(), 0) << again->errors();
    }
}

TEST_F(ClusterCommand, an_unknown_command_is_answered_with_the_closest_match) {
    const auto refusal = [&](std::vector<std::string> arguments) {
        const Outcome outcome = nexar(std::move(arguments));
        EXPECT_EQ(outcome.exit_code, 2);
        EXPECT_EQ(outcome.output, "");
        return outcome.errors;
    };
    EXPECT_EQ(refusal({"rnu"}),
              "nexar: there is no command \"rnu\". Did you mean \"run\"? `nexar --help` lists all "
              "commands.\n");
    EXPECT_EQ(refusal({"token", "craete", "--uses", "3"}),
              "nexar token: there is no command \"craete\". Did you mean \"create\"? `nexar token "
              "--help` lists all commands.\n");
    EXPECT_EQ(refusal({"mpirun-everything"}),
              "nexar: there is no command \"mpirun-everything\". `nexar --help` lists all "
              "commands.\n");
}

TEST_F(ClusterCommand, help_describes_arguments_in_words) {
    const std::string seed = nexar({"seed", "--help"}).output;
    EXPECT_THAT(seed, HasSubstr("a whole number from 1 to 16384; required"));
    EXPECT_THAT(nexar({"token", "create", "--help"}).output,
                HasSubstr("a whole number from 1 to 1048576; default: 1"));
    EXPECT_THAT(nexar({"config", "--help"}).output,
                AllOf(HasSubstr("cannot be combined with --markdown"),
                      HasSubstr("cannot be combined with --json")));
    for (const char* command : {"run", "seed", "token", "peers", "config", "explain", "sim",
                                "bench", "tune", "version"}) {
        EXPECT_THAT(nexar({command, "--help"}).output,
                    AllOf(Not(HasSubstr("UINT")), Not(HasSubstr("Excludes")),
                          Not(HasSubstr("REQUIRED")), Not(HasSubstr("TEXT"))))
            << command;
    }
}

TEST_F(ClusterCommand, seed_refuses_worlds_that_cannot_form) {
    for (const std::string world : {"0", "16385", "1048576", "4294967297"}) {
        const Outcome outcome = nexar({"seed", "--world", world, "--state", state_});
        EXPECT_EQ(outcome.exit_code, 2);
        EXPECT_THAT(outcome.errors,
                    HasSubstr("--world: \"" + world + "\" is not a whole number from 1 to 16384"));
    }
    EXPECT_THAT(nexar({"seed", "--world", "2", "--max", "16385", "--state", state_}).errors,
                HasSubstr("--max: \"16385\" is not a whole number from 1 to 16384"));
}

TEST_F(ClusterCommand, a_seed_for_one_rank_prints_rank_in_the_singular) {
    RunningProgram seed(NEXAR_COMMAND,
                        {"seed", "--listen", "127.0.0.1:0", "--world", "1", "--state", state_},
                        environment());
    EXPECT_TRUE(seed.writes("seed for 1 rank at")) << seed.output() << seed.errors();
}

TEST_F(ClusterCommand, a_waiting_rank_finds_a_seed_that_was_killed_and_restarted) {
    auto seed = start_seed({"--state", state_});
    const Outcome made = nexar({"token", "create", "--uses", "2", "--state", state_});
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    const std::string join = made.output.substr(0, made.output.size() - 1);
    auto variables = environment();
    variables.push_back("NEXAR_JOIN=" + join);
    RunningProgram one(NEXAR_JOINING_RANK, {}, variables);
    std::string tokens;
    for (int i = 0; i < 1000 && tokens.find("1 of 2") == std::string::npos; ++i) {
        tokens = nexar({"token", "list", "--state", state_}).output;
    }
    ASSERT_THAT(tokens, HasSubstr("1 of 2"));
    seed->send(SIGKILL);
    EXPECT_EQ(seed->wait(), 128 + SIGKILL);
    const std::vector<std::string> arguments{
        "seed", "--listen", join.substr(join.find('@') + 1), "--world", "2", "--state", state_};
    seed = std::make_unique<RunningProgram>(NEXAR_COMMAND, arguments, environment());
    ASSERT_TRUE(seed->writes("create a join string with:")) << seed->errors();
    const auto begun = std::chrono::steady_clock::now();
    RunningProgram two(NEXAR_JOINING_RANK, {}, variables);
    EXPECT_EQ(one.wait(), 0) << one.errors();
    EXPECT_EQ(two.wait(), 0) << two.errors();
    // The rank notices within a second. Without an answer from the new seed it would take 15
    // seconds.
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(10));
}

TEST_F(ClusterCommand, two_seeds_cannot_share_a_state_directory) {
    const auto seed = start_seed({"--state", state_});
    const Outcome second =
        nexar({"seed", "--listen", "127.0.0.1:0", "--world", "2", "--state", state_});
    EXPECT_EQ(second.exit_code, 1);
    EXPECT_THAT(second.errors, HasSubstr(state_));
}

TEST_F(ClusterCommand, every_command_has_help_with_an_example) {
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
             {}, {"run"}, {"seed"}, {"token"}, {"token", "create"}, {"peers"}, {"config"}}) {
        auto arguments = command;
        arguments.emplace_back("--help");
        const Outcome outcome = nexar(arguments);
        EXPECT_EQ(outcome.exit_code, 0);
        EXPECT_THAT(outcome.output, AllOf(HasSubstr("Usage: nexar"), HasSubstr("Examples:\n  ")));
        EXPECT_THAT(outcome.output, Not(HasSubstr("run-part"))) << "run-part is internal";
    }
    EXPECT_EQ(nexar({"version"}).output, nexar({"--version"}).output);
}

}  // namespace
}  // namespace nexar
