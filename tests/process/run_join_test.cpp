// A program that joins, started by `nexar run` and in the environment of other launchers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "process/launch_fixture.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

using testing::HasSubstr;

TEST_F(RunJoin, ranks_of_nexar_run_form_a_world) {
    for (const int world : {1, 2, 4}) {
        const Outcome outcome = run_program(
            NEXAR_COMMAND, {"run", "-n", std::to_string(world), "--", NEXAR_JOINING_RANK},
            environment());
        EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
        for (int rank = 0; rank < world; ++rank) {
            EXPECT_THAT(outcome.output,
                        HasSubstr("[" + std::to_string(rank) + "] " + says(rank, world)));
        }
    }
}

TEST_F(RunJoin, rank_that_exits_before_it_joins_ends_the_formation_at_once) {
    // Without word from the launcher, the others would wait for the whole hour.
    for (const std::string delay : {"", "sleep 0.3; "}) {
        const Outcome outcome =
            run({"-n", "3", "--nexar-formation-timeout=1h"},
                "[ $NEXAR_RANK = 2 ] && { " + delay + "exit 0; }; exec " NEXAR_JOINING_RANK);
        EXPECT_EQ(outcome.exit_code, 1);
        EXPECT_THAT(outcome.errors,
                    testing::AllOf(
                        HasSubstr("the cluster cannot form: rank 2 exited with code 0 "
                                  "before it had joined"),
                        testing::ContainsRegex("nexar run: rank 2 (had exited with code 0 before "
                                               "that|exited with code 0 while ranks? )")));
    }
}

TEST_F(RunJoin, ranks_that_join_after_another_rank_exited_learn_of_it) {
    const Outcome outcome =
        run({"-n", "3", "--nexar-formation-timeout=1h"},
            "[ $NEXAR_RANK = 1 ] && exit 0; sleep 0.3; exec " NEXAR_JOINING_RANK);
    EXPECT_EQ(outcome.exit_code, 1);
    EXPECT_THAT(outcome.errors,
                HasSubstr("the cluster cannot form: rank 1 exited with code 0 before it had "
                          "joined"));
}

TEST_F(RunJoin, killed_rank_that_shared_memory_leaves_no_files_behind) {
    const TempDirectory home;
    const TempDirectory temporary;
    const Outcome outcome = run_program(
        NEXAR_COMMAND,
        {"run", "-n", "4", "--nexar-link=shm", "--env", "TEST_KILLED=2", "--", NEXAR_JOINING_RANK},
        {"HOME=" + home.path(), "TMPDIR=" + temporary.path(), "XDG_RUNTIME_DIR=" + temporary.path(),
         "PATH=" + path_, mark()});
    EXPECT_EQ(outcome.exit_code, 128 + SIGKILL) << outcome.errors;
    for (const std::string& directory : {home.path(), temporary.path()}) {
        EXPECT_TRUE(std::filesystem::is_empty(directory)) << directory;
    }
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
        EXPECT_THAT(entry.path().filename().string(), testing::Not(HasSubstr("nexar")));
    }
}

TEST_F(RunJoin, killed_ranks_and_ranks_that_exit_without_leaving_are_reported_as_such) {
    const Outcome killed = run(
        {"-n", "3"}, "ulimit -c 0; [ $NEXAR_RANK = 1 ] && kill -KILL $$; exec " NEXAR_JOINING_RANK);
    EXPECT_EQ(killed.exit_code, 128 + SIGKILL);
    EXPECT_THAT(killed.errors, HasSubstr("nexar run: rank 1 was killed by signal 9 (SIGKILL)"));

    // Rank 2 waits for a message from rank 1 and may notice that the link is gone.
    auto deserted = std::make_unique<RunningProgram>(
        NEXAR_COMMAND,
        std::vector<std::string>{"run", "-n", "3", "--env", "TEST_DESERTER=1", "--",
                                 NEXAR_JOINING_RANK},
        environment());
    ASSERT_TRUE(deserted->writes("exited with code 0")) << deserted->errors();
    EXPECT_THAT(deserted->errors(),
                testing::ContainsRegex("nexar run: ranks? (0 and )?1 (exited with code 0 while "
                                       "ranks? [02 and]+ (is|are) still running|had exited with "
                                       "code 0 before that)"));
    deserted->send(SIGKILL);
    deserted->wait();
}

TEST_F(RunJoin, ranks_of_torchrun_form_a_world) {
    const std::string port = std::to_string(free_port());
    std::vector<std::unique_ptr<RunningProgram>> ranks;
    for (const std::string rank : {"0", "1", "2"}) {
        ranks.push_back(
            start_rank({kSecret, "RANK=" + rank, "WORLD_SIZE=3", "LOCAL_RANK=" + rank,
                        "LOCAL_WORLD_SIZE=3", "GROUP_WORLD_SIZE=1", "TORCHELASTIC_RUN_ID=7",
                        "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + port}));
    }
    expect_ring(ranks);
}

TEST_F(RunJoin, ranks_of_a_slurm_step_form_a_world) {
    const std::string port = std::to_string(free_port());
    std::vector<std::unique_ptr<RunningProgram>> ranks;
    for (const std::string rank : {"0", "1"}) {
        ranks.push_back(
            start_rank({kSecret, "SLURM_JOB_ID=5", "SLURM_STEP_ID=0", "SLURM_PROCID=" + rank,
                        "SLURM_LOCALID=" + rank, "SLURM_NTASKS=2", "SLURM_STEP_NUM_TASKS=2",
                        "SLURM_NODEID=0", "SLURM_STEP_TASKS_PER_NODE=2",
                        "SLURM_STEP_NODELIST=localhost", "NEXAR_SEED_PORT=" + port}));
    }
    expect_ring(ranks);
}

TEST_F(RunJoin, ranks_of_open_mpi_on_one_host_form_a_world) {
    std::vector<std::unique_ptr<RunningProgram>> ranks;
    const std::string port = std::to_string(free_port());
    for (const std::string rank : {"0", "1"}) {
        ranks.push_back(start_rank(
            {kSecret, "OMPI_COMM_WORLD_RANK=" + rank, "OMPI_COMM_WORLD_SIZE=2",
             "OMPI_COMM_WORLD_LOCAL_RANK=" + rank, "OMPI_COMM_WORLD_LOCAL_SIZE=2",
             "PMIX_NAMESPACE=" + std::to_string(::getpid()), "NEXAR_SEED_PORT=" + port}));
    }
    expect_ring(ranks);
}

TEST_F(RunJoin, rank_with_different_collective_settings_cannot_join) {
    const std::string port = std::to_string(free_port());
    for (const std::string setting :
         {"NEXAR_COLLECTIVE_ALGORITHM=all_reduce=tree",
          "NEXAR_COLLECTIVE_ALGORITHM=all_reduce=tree:64KiB", "NEXAR_COLLECTIVE_EAGER_LIMIT=1KiB",
          "NEXAR_FABRIC_LATENCY=3us", "NEXAR_HOST_LATENCY=3us", "NEXAR_REPRODUCIBILITY=runs"}) {
        std::vector<std::unique_ptr<RunningProgram>> ranks;
        for (const std::string rank : {"0", "1"}) {
            std::vector<std::string> variables{kSecret,
                                               "OMPI_COMM_WORLD_RANK=" + rank,
                                               "OMPI_COMM_WORLD_SIZE=2",
                                               "OMPI_COMM_WORLD_LOCAL_RANK=" + rank,
                                               "OMPI_COMM_WORLD_LOCAL_SIZE=2",
                                               "PMIX_NAMESPACE=" + std::to_string(::getpid()),
                                               "NEXAR_SEED_PORT=" + port};
            if (rank == "1") variables.push_back(setting);
            ranks.push_back(start_rank(std::move(variables)));
        }
        EXPECT_EQ(ranks[1]->wait(), 1);
        EXPECT_THAT(ranks[1]->errors(), HasSubstr("they must be equal")) << setting;
        ranks[0]->send(SIGKILL);
        ranks[0]->wait();
    }
}

TEST_F(RunJoin, error_for_a_job_without_a_secret_says_how_to_create_one) {
    auto rank = start_rank({"RANK=0", "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1", "MASTER_PORT=7400"});
    EXPECT_EQ(rank->wait(), 1);
    EXPECT_THAT(rank->errors(), HasSubstr("openssl rand -hex 32"));
}

TEST_F(RunJoin, incomplete_launcher_variables_are_an_error_and_not_a_world_of_one) {
    auto rank = start_rank({kSecret, "RANK=0"});
    EXPECT_EQ(rank->wait(), 1);
    EXPECT_THAT(rank->errors(), HasSubstr("WORLD_SIZE is not set (RANK=0)"));
}

}  // namespace
}  // namespace nexar
