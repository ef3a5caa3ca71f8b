// Ranks in separate pid namespaces, as in containers that share the network of their host: they
// cannot share memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "process/program.hpp"
#include "process/running_program.hpp"
#include "support/temp_directory.hpp"

namespace nexar {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kUnshare = "/usr/bin/unshare";
constexpr const char* kDifferent = "run in different pid namespaces (containers)";

class Containers : public testing::Test {
protected:
    void SetUp() override {
        const Outcome tried = run_program(kUnshare, {"--pid", "--fork", "/bin/true"}, {});
        if (tried.exit_code != 0) {
            GTEST_SKIP() << "no pid namespaces for this user; run as root (" << tried.errors << ")";
        }
    }

    std::vector<std::string> environment(std::vector<std::string> more = {}) const {
        more.insert(more.end(), {"HOME=" + home_.path(), "PATH=/usr/local/bin:/usr/bin:/bin"});
        return more;
    }
    std::string state() const { return (home_ / "state").string(); }

    Outcome nexar(std::vector<std::string> arguments) const {
        return run_program(NEXAR_COMMAND, std::move(arguments), environment());
    }

    /// Starts a seed for two ranks.
    std::unique_ptr<RunningProgram> start_seed(const std::string& link) const {
        auto seed = std::make_unique<RunningProgram>(
            NEXAR_COMMAND,
            std::vector<std::string>{"seed", "--listen", "127.0.0.1:0", "--world", "2", "--state",
                                     state()},
            environment({"NEXAR_LINK=" + link}));
        EXPECT_TRUE(seed->writes("create a join string with:")) << seed->errors();
        return seed;
    }

    /// Starts two ranks, the second one in a pid namespace of its own.
    std::vector<std::unique_ptr<RunningProgram>> start_ranks(
        const std::string& program, const std::vector<std::string>& arguments) const {
        const Outcome token = nexar({"token", "create", "--uses", "2", "--state", state()});
        const std::string join = token.output.substr(0, token.output.find('\n'));
        std::vector<std::unique_ptr<RunningProgram>> ranks;
        for (int rank = 0; rank < 2; ++rank) {
            std::vector<std::string> all;
            if (rank == 1) all = {"--pid", "--fork", "--kill-child", program};
            all.insert(all.end(), arguments.begin(), arguments.end());
            ranks.push_back(std::make_unique<RunningProgram>(rank == 1 ? kUnshare : program, all,
                                                             environment({"NEXAR_JOIN=" + join})));
        }
        return ranks;
    }

    /// Repeats `nexar peers` until its output contains `text`; the seed writes changes in batches.
    void expect_peers(const std::string& text) const {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        Outcome peers;
        do {
            peers = nexar({"peers", "--state", state()});
        } while (peers.output.find(text) == std::string::npos &&
                 std::chrono::steady_clock::now() < deadline);
        EXPECT_THAT(peers.output, HasSubstr(text)) << peers.errors;
    }

    TempDirectory home_;
};

TEST_F(Containers, fall_back_to_quic_and_peers_says_why) {
    const auto seed = start_seed("auto");
    const auto ranks = start_ranks(NEXAR_JOINING_RANK, {"--stay"});
    for (const auto& rank : ranks) EXPECT_TRUE(rank->writes(" of 2 got ")) << rank->errors();
    expect_peers(std::string("no shared memory because this node and its peer ") + kDifferent);
    for (const auto& rank : ranks) rank->close_input();
    for (const auto& rank : ranks) EXPECT_EQ(rank->wait(), 0) << rank->errors();
}

TEST_F(Containers, cannot_join_with_link_shm_and_the_error_says_why) {
    const auto seed = start_seed("shm");
    const auto ranks = start_ranks(NEXAR_JOINING_RANK, {});
    for (const auto& rank : ranks) EXPECT_EQ(rank->wait(), 1) << rank->output();
    EXPECT_THAT(ranks[0]->errors() + ranks[1]->errors(),
                AllOf(HasSubstr("the setting link=shm requires shared memory between all ranks"),
                      HasSubstr(kDifferent)));
    // The rank that notices first tells the other one.
    for (const auto& rank : ranks) EXPECT_THAT(rank->errors(), HasSubstr(kDifferent));
}

TEST_F(Containers, cannot_measure_shared_memory_and_bench_says_why) {
    const auto seed = start_seed("shm");
    const auto ranks = start_ranks(
        NEXAR_COMMAND, {"bench", "all_reduce", "--link", "shm", "--sizes", "8", "--iters", "1"});
    for (const auto& rank : ranks) EXPECT_NE(rank->wait(), 0) << rank->output();
    for (const auto& rank : ranks) {
        EXPECT_THAT(rank->output(), Not(HasSubstr("all_reduce")));
        EXPECT_THAT(rank->errors(), HasSubstr(kDifferent));
    }
}

}  // namespace
}  // namespace nexar
