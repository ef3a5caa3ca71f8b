// How the ranks of a job find each other through the variables that a launcher sets, and which
// errors they report when they cannot.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "process/launch_fixture.hpp"

namespace nexar {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kOtherSecret =
    "NEXAR_JOB_SECRET=c52b0de6f1893a47d0e85b1f6c7a2943b8f01d6e3c4597a2";

class Launched : public RunJoin {
protected:
    /// One of three tasks of a step whose node names only Slurm can resolve.
    static std::vector<std::string> slurm_task(int rank, int nodes) {
        const int node = nodes > 1 && rank == 2 ? 1 : 0;
        const std::string list = nodes > 1 ? "no-such-node[1-2]" : "no-such-node1";
        return {kSecret,
                "SLURM_JOB_ID=" + std::to_string(::getpid()),
                "SLURM_STEP_ID=0",
                "SLURM_PROCID=" + std::to_string(rank),
                "SLURM_LOCALID=" + std::to_string(node == 1 ? 0 : rank),
                "SLURM_STEP_NUM_TASKS=3",
                "SLURM_NODEID=" + std::to_string(node),
                std::string("SLURM_STEP_TASKS_PER_NODE=") + (nodes > 1 ? "2,1" : "3"),
                "SLURM_STEP_NODELIST=" + list,
                "SLURM_JOB_NODELIST=" + list,
                "SLURM_LAUNCH_NODE_IPADDR=127.0.0.1"};
    }

    static std::vector<std::string> with(std::vector<std::string> variables, std::string more) {
        variables.push_back(std::move(more));
        return variables;
    }

    /// Checks without binding the port, which would get in the way of a process that needs it.
    static bool is_taken(int port) {
        const std::string wanted = fmt::format(":{:04X} ", port);
        for (const char* table : {"/proc/net/udp", "/proc/net/udp6"}) {
            std::ifstream file(table);
            const std::string text(std::istreambuf_iterator<char>(file), {});
            if (text.find(wanted) != std::string::npos) return true;
        }
        return false;
    }

    static void await_taken(int port) {
        const SteadyClock clock;
        const TimePoint deadline = clock.now() + std::chrono::seconds(30);
        while (!is_taken(port))
            ASSERT_LT(clock.now(), deadline) << "nobody listens on port " << port;
    }

    /// Variables of a script that numbers its ranks as torchrun does.
    static std::vector<std::string> from_script(const char* secret, int rank, int port) {
        return {secret, "RANK=" + std::to_string(rank), "WORLD_SIZE=2", "MASTER_ADDR=127.0.0.1",
                "MASTER_PORT=" + std::to_string(port)};
    }
};

TEST_F(Launched, a_slurm_step_on_one_node_needs_no_dns_name) {
    std::vector<std::unique_ptr<RunningProgram>> ranks;
    for (const int rank : {0, 1, 2}) ranks.push_back(start_rank(slurm_task(rank, 1)));
    expect_ring(ranks);
}

TEST_F(Launched, a_slurm_batch_script_on_two_nodes_needs_no_dns_name) {
    const std::string port = "NEXAR_SEED_PORT=" + std::to_string(free_port());
    std::vector<std::unique_ptr<RunningProgram>> ranks;
    for (const int rank : {0, 1, 2}) {
        ranks.push_back(start_rank(with(with(slurm_task(rank, 2), "ENVIRONMENT=BATCH"), port)));
    }
    expect_ring(ranks);
    EXPECT_THAT(ranks[2]->errors(), HasSubstr("trying the address 127.0.0.1 that Slurm gives"));
}

TEST_F(Launched, an_unresolvable_node_name_is_an_error_that_says_what_to_set) {
    const auto rank = start_rank(slurm_task(2, 2));
    EXPECT_EQ(rank->wait(), 1);
    EXPECT_THAT(rank->errors(), AllOf(HasSubstr("\"no-such-node1\""),
                                      HasSubstr("set NEXAR_SEED_HOST on all ranks")));
}

TEST_F(Launched, every_rank_refuses_a_world_that_no_seed_can_form) {
    for (const char* const own : {"RANK=0", "RANK=1"}) {
        const auto rank = start_rank({kSecret, own, "WORLD_SIZE=16385", "MASTER_ADDR=127.0.0.1"});
        EXPECT_EQ(rank->wait(), 1);
        EXPECT_THAT(rank->errors(),
                    HasSubstr("WORLD_SIZE=\"16385\" is not a whole number from 1 to 16384"));
    }
}

TEST_F(Launched, rank_0_with_a_taken_port_names_the_variable_that_changes_it) {
    const int port = free_port();
    const auto first = start_rank(from_script(kSecret, 0, port));
    await_taken(port);
    const auto second = start_rank(from_script(kOtherSecret, 0, port));
    EXPECT_EQ(second->wait(), 1);
    EXPECT_THAT(second->errors(), AllOf(HasSubstr("in use"), HasSubstr(std::to_string(port)),
                                        HasSubstr("set NEXAR_SEED_PORT on all ranks")));
}

TEST_F(Launched, a_rank_that_reaches_the_seed_of_another_job_gets_an_error_saying_so) {
    const int port = free_port();
    const auto first = start_rank(from_script(kSecret, 0, port));
    await_taken(port);
    const auto other = start_rank(from_script(kOtherSecret, 1, port));
    EXPECT_EQ(other->wait(), 1);
    EXPECT_THAT(other->errors(),
                AllOf(HasSubstr("it belongs to another job that uses the same port"),
                      HasSubstr("set NEXAR_SEED_PORT on all ranks"), HasSubstr("NEXAR_JOB_SECRET"),
                      Not(HasSubstr("does not know the secret of this job"))));
    // The first job is not disturbed.
    const auto second = start_rank(from_script(kSecret, 1, port));
    EXPECT_EQ(second->wait(), 0) << second->errors();
    EXPECT_EQ(first->wait(), 0) << first->errors();
}

TEST_F(Launched, an_error_of_join_names_the_host_rather_than_its_own_socket_address) {
    const int port = free_port();
    auto variables = from_script(kSecret, 1, port);
    variables.emplace_back("NEXAR_FORMATION_TIMEOUT=300ms");
    const auto rank = start_rank(std::move(variables));
    EXPECT_EQ(rank->wait(), 1);
    std::array<char, 256> name{};
    ASSERT_EQ(::gethostname(name.data(), name.size() - 1), 0);
    EXPECT_THAT(rank->errors(),
                AllOf(HasSubstr("[host " + std::string(name.data())), Not(HasSubstr("[::]"))));
}

TEST_F(Launched, join_removes_the_join_string_of_nexar_run_from_the_environment) {
    const std::string script = std::string(NEXAR_JOINING_RANK) + " --show-environment";
    const Outcome outcome = run({"-n", "2"}, script);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_THAT(outcome.output, AllOf(HasSubstr("NEXAR_JOIN in environ before: 1"),
                                      HasSubstr("NEXAR_JOIN in environ after: 0"),
                                      HasSubstr("join strings in /proc/self/environ after: 0"),
                                      HasSubstr("NEXAR_RANK in environ after: 1")));
}

}  // namespace
}  // namespace nexar
