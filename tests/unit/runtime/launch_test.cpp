#include "runtime/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <string>

#include "unit/runtime/launch_environments.hpp"

namespace nexar {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(LaunchTest, detects_nothing_without_a_launcher) {
    EXPECT_FALSE(detect_launch({}).value());
    const Environment plain = {
        {"HOME", "/root"},
        {"MASTER_ADDR", "10.0.0.1"},  // a script may export it for other programs
        {"NEXAR_JOIN", "nexar:hunter2"},
        {"NEXAR_SEED_HOST", "node1"}};
    EXPECT_FALSE(detect_launch(plain).value());
}

TEST(LaunchTest, nexar_run_provides_everything_and_the_seed_runs_elsewhere) {
    const Launch launch = detected(nexar_run);
    EXPECT_EQ(launch.launcher, Launcher::nexar_run);
    EXPECT_EQ(launch.rank, Rank(2));
    EXPECT_EQ(launch.world, 4U);
    EXPECT_EQ(launch.local_rank, 2U);
    EXPECT_EQ(launch.local_size, 4U);
    EXPECT_FALSE(launch.seed);
    EXPECT_FALSE(launch.hosts_seed());
    EXPECT_EQ(to_text(launch),
              "rank 2 of 4 by nexar run (NEXAR_RANK, NEXAR_WORLD_SIZE, NEXAR_LOCAL_RANK, "
              "NEXAR_LOCAL_SIZE, NEXAR_JOIN); seed from NEXAR_JOIN");
}

TEST(LaunchTest, torchrun_provides_the_address_of_rank_0) {
    const Launch launch = detected(torchrun);
    EXPECT_EQ(launch.launcher, Launcher::torchrun);
    EXPECT_EQ(launch.rank, Rank(5));
    EXPECT_EQ(launch.world, 8U);
    EXPECT_EQ(launch.local_rank, 1U);
    EXPECT_EQ(launch.local_size, 4U);
    EXPECT_EQ(launch.seed, (SeedPlace{.host = "10.0.0.1", .port = 29500}));
    EXPECT_EQ(launch.job, "job7");
    EXPECT_FALSE(launch.hosts_seed());
    EXPECT_TRUE(detected(with(torchrun, {{"RANK", "0"}, {"LOCAL_RANK", "0"}})).hosts_seed());
}

TEST(LaunchTest, open_mpi_ranks_on_one_host_meet_on_loopback_at_a_port_chosen_per_job) {
    const Launch launch = detected(open_mpi);
    EXPECT_EQ(launch.launcher, Launcher::open_mpi);
    EXPECT_EQ(launch.rank, Rank(3));
    EXPECT_EQ(launch.world, 4U);
    ASSERT_TRUE(launch.seed);
    EXPECT_EQ(launch.seed->host, "127.0.0.1");
    EXPECT_GE(launch.seed->port, 10240);
    EXPECT_LT(launch.seed->port, 32768);
    const Launch other_job = detected(with(open_mpi, {{"PMIX_NAMESPACE", "2937978882"}}));
    EXPECT_NE(launch.seed->port, other_job.seed->port);
    const Launch other_rank = detected(
        with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}}));
    EXPECT_EQ(launch.seed, other_rank.seed);
    EXPECT_TRUE(other_rank.hosts_seed());
}

TEST(LaunchTest, open_mpi_on_several_hosts_requires_the_address_of_rank_0) {
    const Environment two_hosts =
        with(open_mpi, {{"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}});
    EXPECT_THAT(
        why_not(two_hosts),
        AllOf(HasSubstr("Open MPI says rank 3 of 4 (OMPI_COMM_WORLD_RANK, "
                        "OMPI_COMM_WORLD_SIZE, OMPI_COMM_WORLD_LOCAL_RANK, "
                        "OMPI_COMM_WORLD_LOCAL_SIZE, PMIX_NAMESPACE), but no variable says"),
              HasSubstr("set NEXAR_SEED_HOST on all ranks")));
    EXPECT_EQ(detected(with(two_hosts, {{"NEXAR_SEED_HOST", "node1"}})).seed,
              (SeedPlace{.host = "node1", .port = 7400}));
}

TEST(LaunchTest, slurm_places_rank_0_on_the_first_host_of_the_step) {
    const Launch launch = detected(slurm);
    EXPECT_EQ(launch.launcher, Launcher::slurm);
    EXPECT_EQ(launch.rank, Rank(6));
    EXPECT_EQ(launch.world, 8U);
    EXPECT_EQ(launch.local_rank, 2U);
    EXPECT_EQ(launch.local_size, 4U);
    EXPECT_EQ(launch.job, "200505.0");
    EXPECT_EQ(launch.seed, (SeedPlace{.host = "gnode07", .port = 7400}));
    EXPECT_EQ(detected(with(slurm, {{"NEXAR_SEED_PORT", "7401"}})).seed->port, 7401);
}

TEST(LaunchTest, slurm_without_a_step_asks_for_srun) {
    const Environment batch = without(with(slurm, {{"SLURM_PROCID", "0"}}), "SLURM_STEP_ID");
    EXPECT_THAT(why_not(batch), AllOf(HasSubstr("use srun"), HasSubstr("SLURM_JOB_ID=200505")));
    // The shell that salloc opens is a step with a reserved number.
    EXPECT_THAT(why_not(with(slurm, {{"SLURM_STEP_ID", "4294967290"}})), HasSubstr("use srun"));
}

TEST(LaunchTest, slurm_for_one_task_needs_no_srun) {
    const Environment one = with(slurm, {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}});
    for (const Environment& shell :
         {without(one, "SLURM_STEP_ID"), with(one, {{"SLURM_STEP_ID", "4294967290"}})}) {
        EXPECT_EQ(why_not(shell), "nothing was detected");
        EXPECT_THAT(why_not(with(shell, {{"NEXAR_LAUNCHER", "slurm"}})), HasSubstr("use srun"));
        EXPECT_THAT(why_not(with(shell, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_NTASKS", "8"}})),
                    HasSubstr("use srun"));
        EXPECT_THAT(why_not(without(with(shell, {{"SLURM_STEP_NUM_TASKS", "1"}}), "SLURM_NTASKS")),
                    HasSubstr("use srun"))
            << "the job may have more tasks";
    }
}

TEST(LaunchTest, a_single_task_does_not_need_the_address_of_rank_0) {
    const Launch launch = detected({{"JOB_COMPLETION_INDEX", "0"}, {"NEXAR_WORLD_SIZE", "1"}});
    EXPECT_EQ(launch.launcher, Launcher::kubernetes);
    EXPECT_EQ(launch.world, 1U);
    EXPECT_EQ(launch.seed, (SeedPlace{.host = "127.0.0.1", .port = 7400}));
}

TEST(LaunchTest, slurm_with_rank_0_on_another_host_requires_its_address) {
    const Environment cyclic = with(slurm, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}});
    EXPECT_THAT(why_not(cyclic), HasSubstr("set NEXAR_SEED_HOST"));
}

TEST(LaunchTest, errors_name_malformed_slurm_lists_and_counts) {
    EXPECT_THAT(why_not(with(slurm, {{"SLURM_STEP_NODELIST", "gnode[07-"}})),
                HasSubstr("SLURM_STEP_NODELIST"));
    EXPECT_THAT(why_not(with(slurm, {{"SLURM_STEP_TASKS_PER_NODE", "4(x"}})),
                HasSubstr("SLURM_STEP_TASKS_PER_NODE"));
}

TEST(LaunchTest, slurm_with_pmi_counts_as_one_launcher_and_fills_in_the_rest) {
    const Environment pmi2 =
        with(slurm, {{"PMI_RANK", "6"}, {"PMI_SIZE", "8"}, {"PMI_JOBID", "200505.0"}});
    const Launch launch = detected(pmi2);
    EXPECT_EQ(launch.launcher, Launcher::pmi);
    EXPECT_EQ(launch.seed, (SeedPlace{.host = "gnode07", .port = 7400}));
    EXPECT_EQ(launch.local_rank, 2U);
    // PMIx does not provide the size, Slurm does.
    const Environment pmix = with(slurm, {{"PMIX_RANK", "6"}, {"PMIX_NAMESPACE", "slurm.pmix.1"}});
    EXPECT_EQ(detected(pmix).launcher, Launcher::slurm);
    EXPECT_THAT(why_not(with(pmix, {{"PMIX_RANK", "5"}})), HasSubstr("contradict"));
    EXPECT_THAT(why_not({{"PMIX_RANK", "5"}}), HasSubstr("PMIx does not pass the size"));
}

TEST(LaunchTest, kubernetes_needs_the_size_and_the_host_of_rank_0) {
    const Launch launch = detected(kubernetes);
    EXPECT_EQ(launch.launcher, Launcher::kubernetes);
    EXPECT_EQ(launch.rank, Rank(3));
    EXPECT_EQ(launch.world, 4U);
    EXPECT_EQ(launch.seed, (SeedPlace{.host = "train-0.train", .port = 7400}));
    EXPECT_THAT(why_not(without(kubernetes, "NEXAR_WORLD_SIZE")),
                AllOf(HasSubstr("NEXAR_WORLD_SIZE is not set"), HasSubstr("spec.completions")));
    EXPECT_THAT(why_not(without(kubernetes, "NEXAR_SEED_HOST")),
                HasSubstr("set NEXAR_SEED_HOST on all ranks"));
}

TEST(LaunchTest, an_external_seed_makes_the_address_of_rank_0_unnecessary) {
    const Launch launch = detected(with(hydra, {{"NEXAR_JOIN", "nexar:hunter2"}}));
    EXPECT_EQ(launch.rank, Rank(1));
    EXPECT_FALSE(launch.seed);
    EXPECT_FALSE(detected(with(hydra, {{"NEXAR_JOIN_FILE", "/run/join"}})).seed);
}

TEST(LaunchTest, errors_about_invalid_numbers_name_variable_and_value) {
    for (const char* value : {"", "x", "-1", "1.5", " 1", "1 ", "0x1", "4294967296", "1048576"}) {
        EXPECT_THAT(why_not(with(torchrun, {{"RANK", value}})),
                    AllOf(HasSubstr("torchrun: RANK=\"" + std::string(value) + "\""),
                          HasSubstr("whole number from 0")));
    }
    EXPECT_THAT(why_not(with(torchrun, {{"WORLD_SIZE", "0"}})),
                HasSubstr("WORLD_SIZE=\"0\" is not a whole number from 1"));
    EXPECT_THAT(why_not(with(torchrun, {{"RANK", "8"}})),
                HasSubstr("rank 8 is not less than the size of the world, 8"));
    EXPECT_THAT(why_not(with(torchrun, {{"LOCAL_RANK", "4"}})),
                HasSubstr("local rank 4 is not less than"));
    EXPECT_THAT(why_not(with(torchrun, {{"LOCAL_WORLD_SIZE", "9"}})),
                HasSubstr("this host has 9 ranks, but the whole world has only 8"));
    EXPECT_THAT(why_not(with(torchrun, {{"MASTER_PORT", "70000"}})), HasSubstr("MASTER_PORT"));
    EXPECT_THAT(why_not(with(torchrun, {{"MASTER_ADDR", "a b"}})), HasSubstr("MASTER_ADDR"));
}

TEST(LaunchTest, an_incomplete_launcher_is_an_error_rather_than_a_world_of_one) {
    EXPECT_THAT(why_not({{"RANK", "0"}}),
                AllOf(HasSubstr("torchrun: WORLD_SIZE is not set (RANK=0)"),
                      HasSubstr("NEXAR_LAUNCHER=none")));
    EXPECT_THAT(why_not({{"WORLD_SIZE", "4"}}), HasSubstr("RANK is not set (WORLD_SIZE=4)"));
    EXPECT_THAT(why_not({{"LOCAL_RANK", "0"}}), HasSubstr("RANK is not set"));
    EXPECT_THAT(why_not({{"OMPI_COMM_WORLD_RANK", "0"}}),
                HasSubstr("OMPI_COMM_WORLD_SIZE is not set"));
    EXPECT_THAT(why_not({{"PMI_SIZE", "4"}}), HasSubstr("PMI_RANK is not set"));
    EXPECT_THAT(why_not(without(without(slurm, "SLURM_NTASKS"), "SLURM_STEP_NUM_TASKS")),
                HasSubstr("SLURM_STEP_NUM_TASKS is not set"));
    EXPECT_THAT(why_not(without(torchrun, "MASTER_ADDR")), HasSubstr("NEXAR_SEED_HOST"));
    EXPECT_THAT(why_not(without(nexar_run, "NEXAR_JOIN")),
                HasSubstr("nexar run: NEXAR_JOIN is not set"));
    EXPECT_THAT(why_not(without(nexar_run, "NEXAR_WORLD_SIZE")),
                AllOf(HasSubstr("NEXAR_WORLD_SIZE is not set"), Not(HasSubstr("hunter2"))));
}

TEST(LaunchTest, torchrun_on_each_host_of_a_slurm_step_is_detected_as_torchrun) {
    const Environment nested = with(with(slurm, {{"SLURM_PROCID", "1"},
                                                 {"SLURM_STEP_NUM_TASKS", "2"},
                                                 {"SLURM_LOCALID", "0"},
                                                 {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}}),
                                    torchrun);
    const Launch launch = detected(nested);
    EXPECT_EQ(launch.launcher, Launcher::torchrun);
    EXPECT_EQ(launch.rank, Rank(5));
    EXPECT_EQ(launch.local_size, 4U);
    // Four Slurm tasks, each with a torchrun that is configured for two hosts.
    EXPECT_THAT(why_not(with(nested, {{"SLURM_STEP_NUM_TASKS", "4"},
                                      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}})),
                AllOf(HasSubstr("torchrun says rank 5 of 8"), HasSubstr("Slurm says rank 1 of 4"),
                      HasSubstr("NEXAR_LAUNCHER=torchrun or NEXAR_LAUNCHER=slurm")));
    EXPECT_EQ(
        detected(with(nested, {{"SLURM_STEP_NUM_TASKS", "4"}, {"NEXAR_LAUNCHER", "torchrun"}}))
            .rank,
        Rank(5));
}

TEST(LaunchTest, torchrun_variables_set_by_a_script_must_agree_with_the_launcher) {
    const Environment script = {{"RANK", "6"}, {"WORLD_SIZE", "8"}};
    EXPECT_EQ(detected(with(slurm, script)).rank, Rank(6));
    EXPECT_EQ(detected(with(slurm, script)).seed->host, "gnode07");
    EXPECT_THAT(why_not(with(slurm, {{"RANK", "0"}, {"WORLD_SIZE", "1"}})),
                HasSubstr("contradict"));
    EXPECT_THAT(why_not(with(slurm, {{"RANK", "5"}, {"WORLD_SIZE", "8"}})),
                HasSubstr("contradict"));
    // A script exports the size for its own use.
    EXPECT_EQ(detected(with(slurm, {{"WORLD_SIZE", "8"}})).launcher, Launcher::slurm);
    EXPECT_THAT(why_not(with(slurm, {{"WORLD_SIZE", "4"}})),
                AllOf(HasSubstr("torchrun says rank unknown of 4"), HasSubstr("contradict")));
}

TEST(LaunchTest, mpirun_inside_an_allocation_takes_precedence_over_slurm) {
    // On the first host mpirun's children inherit the variables of the batch script.
    const Environment batch = without(with(slurm, {{"SLURM_PROCID", "0"}}), "SLURM_STEP_ID");
    EXPECT_EQ(detected(with(batch, open_mpi)).launcher, Launcher::open_mpi);
    // On the other hosts they inherit those of the step that started mpirun's daemon, one per host.
    const Environment daemon = with(slurm, {{"SLURM_PROCID", "1"},
                                            {"SLURM_STEP_NUM_TASKS", "2"},
                                            {"SLURM_LOCALID", "0"},
                                            {"SLURM_STEP_TASKS_PER_NODE", "1(x2)"}});
    EXPECT_EQ(detected(with(daemon, open_mpi)).launcher, Launcher::open_mpi);
    // The variables of an mpirun with one rank, inherited by a larger step.
    const Environment one = with(open_mpi, {{"OMPI_COMM_WORLD_RANK", "0"},
                                            {"OMPI_COMM_WORLD_SIZE", "1"},
                                            {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
                                            {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
    EXPECT_THAT(why_not(with(slurm, one)), HasSubstr("contradict"));
}

TEST(LaunchTest, nexar_run_takes_precedence_over_allocations_and_contradicts_torchrun) {
    const Environment batch = without(with(slurm, {{"SLURM_PROCID", "0"}}), "SLURM_STEP_ID");
    EXPECT_EQ(detected(with(batch, nexar_run)).launcher, Launcher::nexar_run);
    EXPECT_EQ(detected(with(nexar_run, {{"JOB_COMPLETION_INDEX", "7"}})).launcher,
              Launcher::nexar_run);
    EXPECT_THAT(why_not(with(torchrun, nexar_run)),
                AllOf(HasSubstr("contradict"), Not(HasSubstr("hunter2"))));
    EXPECT_EQ(detected(with(with(torchrun, nexar_run), {{"NEXAR_LAUNCHER", "torchrun"}})).rank,
              Rank(5));
}

TEST(LaunchTest, the_user_may_choose_the_launcher) {
    EXPECT_FALSE(detect_launch(with(torchrun, {{"NEXAR_LAUNCHER", "none"}})).value());
    EXPECT_THAT(why_not(with(torchrun, {{"NEXAR_LAUNCHER", "slurm"}})),
                HasSubstr("none of the variables of that launcher is set"));
    EXPECT_THAT(why_not({{"NEXAR_LAUNCHER", "tochrun"}}),
                AllOf(HasSubstr("NEXAR_LAUNCHER=\"tochrun\" is not a known launcher"),
                      HasSubstr("nexar-run, torchrun, openmpi, pmi, slurm, kubernetes, none")));
}

TEST(LaunchTest, a_seed_address_set_by_the_user_takes_precedence) {
    EXPECT_EQ(detected(with(torchrun, {{"NEXAR_SEED_HOST", "node9"}})).seed,
              (SeedPlace{.host = "node9", .port = 29500}));
    EXPECT_EQ(detected(with(torchrun, {{"NEXAR_SEED_PORT", "7400"}})).seed,
              (SeedPlace{.host = "10.0.0.1", .port = 7400}));
    EXPECT_THAT(why_not(with(slurm, {{"NEXAR_SEED_HOST", "a:1"}, {"NEXAR_SEED_PORT", "2"}})),
                HasSubstr("name different ports"));
    EXPECT_THAT(why_not(with(slurm, {{"NEXAR_SEED_PORT", "0"}})), HasSubstr("NEXAR_SEED_PORT"));
    EXPECT_THAT(why_not(with(slurm, {{"NEXAR_SEED_HOST", ""}})), HasSubstr("NEXAR_SEED_HOST"));
}

TEST(LaunchTest, messages_show_values_on_one_line) {
    EXPECT_THAT(why_not({{"RANK", "1\n2"}}), AllOf(HasSubstr("1\\n2"), Not(HasSubstr("\n"))));
    const std::string job(5000, 'j');
    EXPECT_LE(detected(with(torchrun, {{"TORCHELASTIC_RUN_ID", job}})).job.size(), 256U);
}

TEST(LaunchTest, only_launcher_variables_are_read_and_no_secrets) {
    ::setenv("NEXAR_JOIN", "hunter2", 1);
    ::setenv("NEXAR_JOB_SECRET", "hunter2", 1);
    ::setenv("SLURM_PROCID", "3", 1);
    const auto environment = read_launch_environment();
    ::unsetenv("NEXAR_JOIN");
    ::unsetenv("NEXAR_JOB_SECRET");
    ::unsetenv("SLURM_PROCID");
    const auto value = [&](std::string_view wanted) -> std::string {
        const auto found = std::ranges::find(environment, wanted, &NamedValue::name);
        return found == environment.end() ? "absent" : found->value;
    };
    EXPECT_EQ(value("NEXAR_JOIN"), "");
    EXPECT_EQ(value("NEXAR_JOB_SECRET"), "absent");
    EXPECT_EQ(value("SLURM_PROCID"), "3");
    EXPECT_EQ(value("PATH"), "absent");
}

}  // namespace
}  // namespace nexar
