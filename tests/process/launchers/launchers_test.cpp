// Programs started by real launchers: Open MPI's mpirun, MPICH's mpiexec, Slurm's srun and sbatch.
// Skipped if these are not installed.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "process/launchers/slurm_cluster.hpp"
#include "process/program.hpp"
#include "process/running_program.hpp"

namespace nexar::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kSecret = "NEXAR_JOB_SECRET=8d1f4c0b7a5e92633f7e0a4d1c8b5926ee01c49ab7d25f38";

/// Expects the output of a ring of three ranks.
void expect_ring_of_3(const std::string& output) {
    EXPECT_THAT(output,
                AllOf(HasSubstr("rank 0 of 3 got 1002\n"), HasSubstr("rank 1 of 3 got 1000\n"),
                      HasSubstr("rank 2 of 3 got 1001\n")));
}

/// Starts programs under launchers, and skips the test if the launcher is not installed.
class Launchers : public ::testing::Test {
protected:
    void need(const std::string& program, const char* package) {
        path_ = installed(program);
        if (path_.empty()) GTEST_SKIP() << program << " is not installed; package: " << package;
    }

    static std::vector<std::string> environment(std::vector<std::string> more = {}) {
        more.insert(more.end(),
                    {kSecret, "PATH=/usr/bin:/bin", "HOME=/tmp", "NEXAR_FORMATION_TIMEOUT=30s",
                     "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"});
        return more;
    }

    std::string path_;
};

TEST_F(Launchers, open_mpi_on_one_host_needs_no_address) {
    need("mpirun.openmpi", "openmpi-bin");
    if (IsSkipped()) return;
    const Outcome outcome =
        run_program(path_, {"--oversubscribe", "-n", "3", NEXAR_JOINING_RANK}, environment());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    expect_ring_of_3(outcome.output);
}

TEST_F(Launchers, mpich_on_one_host_needs_no_address) {
    need("mpiexec.hydra", "mpich");
    if (IsSkipped()) return;
    const Outcome outcome = run_program(path_, {"-n", "3", NEXAR_JOINING_RANK}, environment());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    expect_ring_of_3(outcome.output);
}

TEST_F(Launchers, two_mpich_jobs_with_the_same_secret_do_not_mix) {
    need("mpiexec.hydra", "mpich");
    if (IsSkipped()) return;
    std::vector<std::unique_ptr<RunningProgram>> jobs;
    for (int i = 0; i < 2; ++i) {
        jobs.push_back(std::make_unique<RunningProgram>(
            path_, std::vector<std::string>{"-n", "3", "/bin/sh", "-c", NEXAR_JOINING_RANK},
            environment()));
    }
    for (const auto& job : jobs) {
        EXPECT_EQ(job->wait(), 0) << job->errors();
        expect_ring_of_3(job->output());
    }
}

class Slurm : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        if (SlurmCluster::why_not().empty()) cluster = std::make_unique<SlurmCluster>();
    }
    static void TearDownTestSuite() { cluster.reset(); }
    void SetUp() override {
        if (!cluster) GTEST_SKIP() << SlurmCluster::why_not();
    }

    static std::vector<std::string> environment(std::vector<std::string> more = {}) {
        auto all = cluster->environment();
        all.insert(all.end(), {kSecret, "NEXAR_FORMATION_TIMEOUT=30s"});
        more.insert(more.end(), all.begin(), all.end());
        return more;
    }

    static Outcome srun(std::vector<std::string> arguments, std::vector<std::string> more = {}) {
        arguments.emplace_back(NEXAR_JOINING_RANK);
        return run_program(installed("srun"), std::move(arguments), environment(std::move(more)));
    }

    static std::unique_ptr<SlurmCluster> cluster;
};

std::unique_ptr<SlurmCluster> Slurm::cluster;

TEST_F(Slurm, job_on_one_node_needs_no_dns_name) {
    const Outcome outcome = srun({"-N", "1", "-n", "3"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    expect_ring_of_3(outcome.output);
}

TEST_F(Slurm, job_on_one_node_with_pmi_needs_no_dns_name) {
    const Outcome outcome = srun({"--mpi=pmi2", "-N", "1", "-n", "3"});
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    expect_ring_of_3(outcome.output);
}

TEST_F(Slurm, batch_job_on_two_nodes_needs_no_dns_name) {
    const std::string script = cluster->file("job.sh");
    const std::string output = cluster->file("job.out");
    std::ofstream(script) << "#!/bin/sh\nexec srun -N 2 -n 3 " << NEXAR_JOINING_RANK << "\n";
    const Outcome outcome = run_program(
        installed("sbatch"), {"-N", "2", "-n", "3", "-o", output, script}, environment());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    // Not --wait, which polls only every ten seconds.
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
    while (!run_program(installed("squeue"), {"-h"}, environment()).output.empty()) {
        ASSERT_LT(std::chrono::steady_clock::now(), deadline);
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    std::ifstream file(output);
    expect_ring_of_3({std::istreambuf_iterator<char>(file), {}});
}

TEST_F(Slurm, error_on_two_nodes_without_dns_names_says_what_to_set) {
    const Outcome outcome =
        srun({"-N", "2", "-n", "3", "--kill-on-bad-exit=1"}, {"NEXAR_FORMATION_TIMEOUT=20s"});
    EXPECT_NE(outcome.exit_code, 0);
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("\"nexar-n1\""), HasSubstr("set NEXAR_SEED_HOST on all ranks")));
    const Outcome told = srun({"-N", "2", "-n", "3"}, {"NEXAR_SEED_HOST=127.0.0.1"});
    EXPECT_EQ(told.exit_code, 0) << told.errors;
    expect_ring_of_3(told.output);
}

TEST_F(Slurm, killed_rank_is_soon_reported_as_a_process_that_has_ended) {
    const auto begun = std::chrono::steady_clock::now();
    const Outcome outcome = srun({"-N", "1", "-n", "3"}, {"TEST_KILLED=1"});
    EXPECT_NE(outcome.exit_code, 0);
    // Rank 2 waits for a message from rank 1 and sends only keep-alives, every three seconds.
    EXPECT_THAT(outcome.errors,
                AllOf(HasSubstr("no process listens at"), HasSubstr("the process has ended")));
    EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(15));
}

}  // namespace
}  // namespace nexar::testing
