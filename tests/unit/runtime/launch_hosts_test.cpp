// Where the ranks of a job meet, derived from what MPICH and Slurm report about hosts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>

#include "unit/runtime/launch_environments.hpp"

namespace nexar {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(LaunchTest, mpich_ranks_on_one_host_meet_on_loopback_at_a_port_chosen_per_job) {
    const Launch launch = detected(hydra);
    EXPECT_EQ(launch.launcher, Launcher::pmi);
    EXPECT_EQ(launch.rank, Rank(1));
    EXPECT_EQ(launch.world, 4U);
    EXPECT_EQ(launch.local_rank, 1U);
    EXPECT_EQ(launch.local_size, 4U);
    ASSERT_TRUE(launch.seed);
    EXPECT_EQ(launch.seed->host, "127.0.0.1");
    const Launch first = detected(with(hydra, {{"PMI_RANK", "0"}, {"MPI_LOCALRANKID", "0"}}));
    EXPECT_EQ(first.seed, launch.seed);
    EXPECT_EQ(first.job, launch.job);
    EXPECT_TRUE(first.hosts_seed());
    const Launch other_job = detected(with(hydra, {{"PMI_FD", "served by process 14399"}}));
    EXPECT_NE(other_job.seed->port, launch.seed->port);
    EXPECT_NE(other_job.job, launch.job);
}

TEST(LaunchTest, mpich_on_several_hosts_requires_the_address_of_rank_0) {
    const Environment two_hosts = with(hydra, {{"MPI_LOCALNRANKS", "2"}});
    EXPECT_THAT(why_not(two_hosts), AllOf(HasSubstr("PMI says rank 1 of 4 (PMI_RANK, PMI_SIZE"),
                                          HasSubstr("set NEXAR_SEED_HOST on all ranks")));
    // Each host has its own PMI server, so the server does not identify the job.
    const Launch launch = detected(with(two_hosts, {{"NEXAR_SEED_HOST", "[::1]:7500"}}));
    EXPECT_EQ(launch.seed, (SeedPlace{.host = "::1", .port = 7500}));
    EXPECT_EQ(launch.job, "");
}

TEST(LaunchTest, mpich_with_an_unknown_pmi_server_requires_the_address_of_rank_0) {
    // The descriptor number differs by rank; ranks that used it as the job's name would never meet.
    for (const char* value : {"", "9"}) {
        EXPECT_THAT(why_not(with(hydra, {{"PMI_FD", value}})),
                    HasSubstr("set NEXAR_SEED_HOST on all ranks"));
    }
}

TEST(LaunchTest, pmi_fd_is_replaced_by_the_process_at_its_other_end) {
    std::array<int, 2> ends{};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    const auto read = [](const std::string& value) {
        ::setenv("PMI_FD", value.c_str(), 1);
        const auto environment = read_launch_environment();
        ::unsetenv("PMI_FD");
        const auto found = std::ranges::find(environment, "PMI_FD", &NamedValue::name);
        return found == environment.end() ? "absent" : found->value;
    };
    EXPECT_EQ(read(std::to_string(ends[0])), "served by process " + std::to_string(::getpid()));
    for (const int end : ends) ::close(end);
    EXPECT_EQ(read(std::to_string(ends[0])), "");
    for (const char* value : {"", "x", "-1", "99999999999"}) EXPECT_EQ(read(value), "") << value;
}

TEST(LaunchTest, slurm_ranks_on_one_node_meet_on_loopback_whatever_its_name) {
    const Launch launch = detected(slurm_on_one_node);
    EXPECT_EQ(launch.launcher, Launcher::slurm);
    EXPECT_EQ(launch.local_size, 2U);
    ASSERT_TRUE(launch.seed);
    EXPECT_EQ(launch.seed->host, "127.0.0.1");
    EXPECT_GE(launch.seed->port, 10240);
    EXPECT_LT(launch.seed->port, 32768);
    EXPECT_EQ(
        detected(with(slurm_on_one_node, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "0"}})).seed,
        launch.seed);
    EXPECT_NE(detected(with(slurm_on_one_node, {{"SLURM_STEP_ID", "1"}})).seed->port,
              launch.seed->port)
        << "two steps share the node";
    EXPECT_EQ(detected(without(slurm_on_one_node, "SLURM_STEP_TASKS_PER_NODE")).seed, launch.seed);
    EXPECT_EQ(detected(with(slurm_on_one_node, {{"NEXAR_SEED_PORT", "7777"}})).seed,
              (SeedPlace{.host = "127.0.0.1", .port = 7777}));
    EXPECT_EQ(detected(with(slurm_on_one_node, {{"NEXAR_SEED_HOST", "gn1"}})).seed->host, "gn1");
    // The same with --mpi=pmi2.
    const Launch pmi2 = detected(with(slurm_on_one_node, {{"PMI_FD", "served by process 9"},
                                                          {"PMI_JOBID", "17.0"},
                                                          {"PMI_RANK", "1"},
                                                          {"PMI_SIZE", "2"}}));
    EXPECT_EQ(pmi2.seed->host, "127.0.0.1");
}

TEST(LaunchTest, slurm_batch_script_provides_the_address_of_the_first_node) {
    const Launch launch = detected(slurm_batch);
    EXPECT_EQ(launch.seed, (SeedPlace{.host = "gn1", .port = 7400}));
    EXPECT_THAT(launch.seed_addresses, ElementsAre("10.1.0.11"));
    // Outside a batch script srun may run on a login node, or the step may start on another node.
    EXPECT_THAT(detected(without(slurm_batch, "ENVIRONMENT")).seed_addresses, IsEmpty());
    EXPECT_THAT(detected(with(slurm_batch, {{"SLURM_JOB_NODELIST", "gn[0-2]"}})).seed_addresses,
                IsEmpty());
    // A host set by the user replaces it.
    EXPECT_THAT(detected(with(slurm_batch, {{"NEXAR_SEED_HOST", "node9"}})).seed_addresses,
                IsEmpty());
}

TEST(LaunchTest, slurm_provides_the_addresses_of_cloud_nodes) {
    const auto addresses = [](const char* aliases) {
        return detected(
                   with(without(slurm_batch, "ENVIRONMENT"), {{"SLURM_NODE_ALIASES", aliases}}))
            .seed_addresses;
    };
    EXPECT_THAT(addresses("gn2:10.2.0.2:ip-2,gn1:10.2.0.1:ip-1"), ElementsAre("10.2.0.1"));
    EXPECT_THAT(addresses("gn1:[fd00::1]:ip-1"), ElementsAre("fd00::1"));
    for (const char* useless :
         {"(null)", "", "gn10:10.2.0.1:x", "gn1", "gn1:", "gn1:a b:x", "gn1:["}) {
        EXPECT_THAT(addresses(useless), IsEmpty()) << useless;
    }
}

}  // namespace
}  // namespace nexar
