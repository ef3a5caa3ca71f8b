#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/launch.hpp"

namespace nexar {

// Environments as real launchers set them, and shorthands for running detect_launch() on them.

using Environment = std::vector<NamedValue>;

inline Environment with(Environment environment, const Environment& more) {
    for (const NamedValue& variable : more) {
        std::erase_if(environment, [&](const auto& old) { return old.name == variable.name; });
        environment.push_back(variable);
    }
    return environment;
}

inline Environment without(Environment environment, std::string_view name) {
    std::erase_if(environment, [&](const auto& variable) { return variable.name == name; });
    return environment;
}

inline Launch detected(const Environment& environment) {
    auto launch = detect_launch(environment);
    if (!launch) {
        ADD_FAILURE() << launch.error().what();
        return {};
    }
    if (!*launch) {
        ADD_FAILURE() << "nothing was detected";
        return {};
    }
    return **launch;
}

inline std::string why_not(const Environment& environment) {
    const auto launch = detect_launch(environment);
    if (launch) return *launch ? "detected: " + to_text(**launch) : "nothing was detected";
    EXPECT_EQ(launch.error().code(), Errc::bad_config);
    return launch.error().cause();
}

// As `nexar run -n 4` sets them.
inline const Environment nexar_run = {{"NEXAR_JOIN", "nexar:hunter2"},
                                      {"NEXAR_RANK", "2"},
                                      {"NEXAR_WORLD_SIZE", "4"},
                                      {"NEXAR_LOCAL_RANK", "2"},
                                      {"NEXAR_LOCAL_SIZE", "4"}};

// As `torchrun --nnodes=2 --nproc-per-node=4` sets them.
inline const Environment torchrun = {{"GROUP_RANK", "1"},
                                     {"GROUP_WORLD_SIZE", "2"},
                                     {"LOCAL_RANK", "1"},
                                     {"LOCAL_WORLD_SIZE", "4"},
                                     {"MASTER_ADDR", "10.0.0.1"},
                                     {"MASTER_PORT", "29500"},
                                     {"RANK", "5"},
                                     {"ROLE_RANK", "5"},
                                     {"TORCHELASTIC_RESTART_COUNT", "0"},
                                     {"TORCHELASTIC_RUN_ID", "job7"},
                                     {"WORLD_SIZE", "8"}};

// As `mpirun -n 4` of Open MPI 4 sets them on one host.
inline const Environment open_mpi = {{"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
                                     {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
                                     {"OMPI_COMM_WORLD_NODE_RANK", "3"},
                                     {"OMPI_COMM_WORLD_RANK", "3"},
                                     {"OMPI_COMM_WORLD_SIZE", "4"},
                                     {"PMIX_NAMESPACE", "2937978881"},
                                     {"PMIX_RANK", "3"}};

// As mpiexec of MPICH 4.0.2 sets them on one host, except for PMI_FD: its number differs by rank,
// and read_launch_environment() replaces it.
inline const Environment hydra = {{"GFORTRAN_UNBUFFERED_PRECONNECTED", "y"},
                                  {"HYDI_CONTROL_FD", "7"},
                                  {"MPI_LOCALNRANKS", "4"},
                                  {"MPI_LOCALRANKID", "1"},
                                  {"PMI_FD", "served by process 14398"},
                                  {"PMI_RANK", "1"},
                                  {"PMI_SIZE", "4"}};

// As `srun -N 2 -n 8` sets them for a task on the second node.
inline const Environment slurm = {{"SLURM_JOB_ID", "200505"},
                                  {"SLURM_LOCALID", "2"},
                                  {"SLURM_NNODES", "2"},
                                  {"SLURM_NODEID", "1"},
                                  {"SLURM_NODELIST", "login1"},
                                  {"SLURM_NTASKS", "8"},
                                  {"SLURM_PROCID", "6"},
                                  {"SLURM_STEP_ID", "0"},
                                  {"SLURM_STEP_NODELIST", "gnode[07-08]"},
                                  {"SLURM_STEP_NUM_TASKS", "8"},
                                  {"SLURM_STEP_TASKS_PER_NODE", "4(x2)"}};

// As `srun -N 1 -n 2` of Slurm 22.05 sets them, for a node whose name only Slurm knows.
inline const Environment slurm_on_one_node = {{"SLURMD_NODENAME", "gn1"},
                                              {"SLURM_JOB_ID", "17"},
                                              {"SLURM_JOB_NODELIST", "gn1"},
                                              {"SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1"},
                                              {"SLURM_LOCALID", "1"},
                                              {"SLURM_NNODES", "1"},
                                              {"SLURM_NODEID", "0"},
                                              {"SLURM_NODELIST", "gn1"},
                                              {"SLURM_NTASKS", "2"},
                                              {"SLURM_PROCID", "1"},
                                              {"SLURM_STEP_ID", "0"},
                                              {"SLURM_STEP_NODELIST", "gn1"},
                                              {"SLURM_STEP_NUM_NODES", "1"},
                                              {"SLURM_STEP_NUM_TASKS", "2"},
                                              {"SLURM_STEP_TASKS_PER_NODE", "2"},
                                              {"SLURM_TOPOLOGY_ADDR", "gn1"}};

// As Slurm 22.05 sets them for a task on the second node when a batch script runs `srun -n 3`.
inline const Environment slurm_batch = {{"ENVIRONMENT", "BATCH"},
                                        {"SLURMD_NODENAME", "gn2"},
                                        {"SLURM_JOB_ID", "6"},
                                        {"SLURM_JOB_NODELIST", "gn[1-2]"},
                                        {"SLURM_LAUNCH_NODE_IPADDR", "10.1.0.11"},
                                        {"SLURM_LOCALID", "0"},
                                        {"SLURM_NODEID", "1"},
                                        {"SLURM_NODELIST", "gn[1-2]"},
                                        {"SLURM_NTASKS", "3"},
                                        {"SLURM_PROCID", "2"},
                                        {"SLURM_STEP_ID", "0"},
                                        {"SLURM_STEP_NODELIST", "gn[1-2]"},
                                        {"SLURM_STEP_NUM_TASKS", "3"},
                                        {"SLURM_STEP_TASKS_PER_NODE", "2,1"}};

inline const Environment kubernetes = {{"JOB_COMPLETION_INDEX", "3"},
                                       {"KUBERNETES_SERVICE_HOST", "10.96.0.1"},
                                       {"NEXAR_SEED_HOST", "train-0.train"},
                                       {"NEXAR_WORLD_SIZE", "4"}};

}  // namespace nexar
