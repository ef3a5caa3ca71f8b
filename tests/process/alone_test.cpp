// A program that was started without a launcher is a world of one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <nexar/nexar.hpp>
#include <string>
#include <vector>

#include "process/program.hpp"

namespace nexar {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Runs a typical user program with exactly this environment.
Outcome run_alone(std::vector<std::string> environment) {
    return run_program(NEXAR_JOINING_RANK, {}, std::move(environment));
}

void expect_alone(std::vector<std::string> environment) {
    const Outcome outcome = run_alone(std::move(environment));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(outcome.output, "rank 0 of 1 got 1000\n");
    EXPECT_EQ(outcome.errors, "");
}

TEST(Alone, a_program_without_a_launcher_is_a_world_of_one) {
    expect_alone({});
    expect_alone({"HOME=/nowhere", "NEXAR_LAUNCHER=none"});
    // A job secret in the environment does not name a cluster.
    expect_alone({"NEXAR_JOB_SECRET=8d1f4c0b7a5e92633f7e0a4d1c8b5926ee01c49ab7d25f38"});
}

TEST(Alone, logs_one_line_at_level_info) {
    const Outcome outcome = run_alone({"NEXAR_LOG_LEVEL=info"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("no launcher started this process, so it is a world of "
                                "one; start several ranks with `nexar run -n 4"),
                      Not(HasSubstr("warning"))));
    EXPECT_EQ(std::ranges::count(outcome.errors, '\n'), 1) << outcome.errors;
}

TEST(Alone, a_launcher_with_one_task_needs_no_secret) {
    expect_alone({"RANK=0", "WORLD_SIZE=1", "LOCAL_RANK=0", "LOCAL_WORLD_SIZE=1",
                  "MASTER_ADDR=no-such-host", "MASTER_PORT=29500"});
    expect_alone({"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=1"});
    expect_alone({"PMI_RANK=0", "PMI_SIZE=1"});
    expect_alone({"JOB_COMPLETION_INDEX=0", "NEXAR_WORLD_SIZE=1"});
    expect_alone({"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=1"});
    expect_alone({"SLURM_JOB_ID=7", "SLURM_NTASKS=1", "SLURM_PROCID=0"});  // sbatch -n 1
}

TEST(Alone, a_launcher_with_several_tasks_is_not_ignored) {
    const std::vector<std::vector<std::string>> environments{
        {"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"},
        {"OMPI_COMM_WORLD_RANK=0", "OMPI_COMM_WORLD_SIZE=2"},
        {"PMI_RANK=0", "PMI_SIZE=2"},
        {"JOB_COMPLETION_INDEX=0", "NEXAR_WORLD_SIZE=2"},
        {"JOB_COMPLETION_INDEX=0"},
        {"NEXAR_RANK=0", "NEXAR_WORLD_SIZE=2"},
        {"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_PROCID=0", "SLURM_STEP_NUM_TASKS=2"},
        {"SLURM_JOB_ID=7", "SLURM_NTASKS=2", "SLURM_PROCID=0"}};
    for (const auto& environment : environments) {
        const Outcome outcome = run_alone(environment);
        EXPECT_EQ(outcome.exit_code, 1) << environment.front();
        EXPECT_THAT(outcome.errors, HasSubstr("bad_config: ")) << environment.front();
        EXPECT_EQ(outcome.output, "") << environment.front();
    }
}

TEST(Alone, require_cluster_forbids_a_world_of_one) {
    const Outcome outcome = run_alone({"NEXAR_REQUIRE_CLUSTER=1"});
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("bad_config: nothing says which cluster to join, and the setting "
                                "require_cluster (environment NEXAR_REQUIRE_CLUSTER) forbids a "
                                "world of one"),
                      HasSubstr("nexar run -n 4"), HasSubstr("NEXAR_JOIN")));
    expect_alone({"NEXAR_REQUIRE_CLUSTER=0"});
    const Outcome task = run_alone({"NEXAR_REQUIRE_CLUSTER=1", "PMI_RANK=0", "PMI_SIZE=1"});
    EXPECT_EQ(task.exit_code, 1);
    EXPECT_THAT(task.errors, HasSubstr("NEXAR_JOB_SECRET"));
}

TEST(Alone, seed_variables_without_a_launcher_are_an_error) {
    for (const std::string variable : {"NEXAR_SEED_HOST=node1", "NEXAR_SEED_PORT=7400"}) {
        const Outcome outcome = run_alone({variable});
        EXPECT_EQ(outcome.exit_code, 1);
        EXPECT_THAT(outcome.errors, AllOf(HasSubstr("nothing says which cluster to join, and "),
                                          HasSubstr(variable.substr(0, 15))));
    }
}

TEST(Alone, a_bench_command_still_requires_a_cluster) {
    const Outcome outcome = run_program(NEXAR_COMMAND, {"bench", "all_reduce"}, {});
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.errors, AllOf(HasSubstr("nothing says which cluster to join"),
                                      HasSubstr("nexar run -n 4")));
}

TEST(Alone, abort_ends_the_process) {
    const Outcome outcome = run_program(NEXAR_ABORTING_RANK, {"0", "5"}, {});
    EXPECT_EQ(outcome.exit_code, 5);
    EXPECT_EQ(outcome.output, "met");
    EXPECT_THAT(outcome.errors,
                HasSubstr("rank 0 aborted the program with code 5: the input file"));
}

JoinOptions alone() {
    ::setenv("NEXAR_LAUNCHER", "none", 1);  // the test itself may run under a launcher
    return {};
}

TEST(Alone, a_rank_other_than_0_is_an_error) {
    for (const int rank : {1, 7, -1}) {
        JoinOptions options = alone();
        options.rank = rank;
        try {
            join(options);
            ADD_FAILURE() << "join() succeeded as rank " << rank;
        } catch (const Error& error) {
            EXPECT_EQ(error.code(), rank < 0 ? Errc::invalid_argument : Errc::bad_config);
            EXPECT_THAT(error.what(), HasSubstr("rank " + std::to_string(rank) + " was requested"));
        }
    }
    JoinOptions options = alone();
    options.rank = 0;
    EXPECT_EQ(join(options).world().size(), 1);
}

TEST(Alone, settings_apply_as_for_every_node) {
    JoinOptions options = alone();
    options.settings = {{"listen", "127.0.0.1:0"}, {"collective_algorithm", "no_such=thing"}};
    EXPECT_THROW(join(options), Error);
    options.settings.pop_back();
    const Node node = join(options);
    EXPECT_THAT(node.address(), ::testing::StartsWith("127.0.0.1:"));
    EXPECT_TRUE(node.peers().empty());
}

TEST(Alone, several_worlds_of_one_coexist) {
    const Node first = join(alone());
    const Node second = join(alone());
    EXPECT_EQ(first.world().rank(), 0);
    EXPECT_EQ(second.world().rank(), 0);
    EXPECT_NE(first.address(), second.address());
}

TEST(Alone, everything_works_in_a_world_of_one) {
    Node node = join(alone());
    Communicator world = node.world();
    EXPECT_EQ(world.host(0), 0);
    std::array<int, 3> sent{1, 2, 3};
    std::array<int, 3> got{};
    auto receive = world.recv(std::span(got), 0, 5);
    world.send(std::span(sent), 0, 5).wait();
    EXPECT_EQ(receive.wait().bytes, sizeof sent);
    EXPECT_EQ(got, sent);

    Communicator copy = world.duplicate();
    auto half = copy.split(4, 1);
    ASSERT_TRUE(half);
    EXPECT_EQ(half->size(), 1);
    EXPECT_FALSE(world.split(Communicator::undefined));
    EXPECT_TRUE(world.subgroup(std::vector<int>{0}));

    std::array<int, 3> values{4, 5, 6};
    std::array<int, 3> out{};
    half->barrier().wait();
    half->broadcast(std::span(values), 0).wait();
    half->all_reduce(std::span(values), sum).wait();
    EXPECT_EQ(values, (std::array{4, 5, 6}));
    const auto expect_copied = [&](Work<> work) {
        work.wait();
        EXPECT_EQ(out, values);
        out = {};
    };
    const std::span<const int> in(values);
    expect_copied(half->reduce(in, std::span(out), sum, 0));
    expect_copied(half->scan(in, std::span(out), sum));
    expect_copied(half->reduce_scatter(in, std::span(out), sum));
    expect_copied(half->all_gather(in, std::span(out)));
    expect_copied(half->gather(in, std::span(out), 0));
    expect_copied(half->scatter(in, std::span(out), 0));
    expect_copied(half->all_to_all(in, std::span(out)));
    half->exclusive_scan(in, std::span(out), sum).wait();

    const auto twice = node.serve("twice", [](int x) { return 2 * x; });
    EXPECT_EQ(node.call<int>(0, "twice", 21).wait(), 42);
}

}  // namespace
}  // namespace nexar
