#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "process/program.hpp"
#include "process/running_program.hpp"
#include "support/temp_directory.hpp"

namespace nexar {

/// The `nexar` command with a home directory of its own.
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
        EXPECT_TRUE(seed->writes("create a join string with:")) << seed->errors();
        return seed;
    }

    /// Starts processes that join with this string and stay until their input is closed.
    std::vector<std::unique_ptr<RunningProgram>> start_ranks(int count,
                                                             const std::string& token) const {
        auto variables = environment();
        variables.push_back("NEXAR_JOIN=" + token.substr(0, token.find('\n')));
        std::vector<std::unique_ptr<RunningProgram>> ranks;
        for (int i = 0; i < count; ++i) {
            ranks.push_back(std::make_unique<RunningProgram>(
                NEXAR_JOINING_RANK, std::vector<std::string>{"--stay"}, variables));
        }
        return ranks;
    }

    static void end(const std::vector<std::unique_ptr<RunningProgram>>& ranks) {
        for (const auto& one : ranks) one->close_input();
        for (const auto& one : ranks) EXPECT_EQ(one->wait(), 0) << one->errors();
    }

    /// Repeats `nexar peers` until its output contains `text`, since the seed writes changes in
    /// batches.
    std::string await_peers(const std::string& text) const {
        const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
        Outcome peers;
        do {
            peers = nexar({"peers", "--state", state_});
        } while (peers.output.find(text) == std::string::npos &&
                 std::chrono::steady_clock::now() < deadline);
        EXPECT_THAT(peers.output, testing::HasSubstr(text)) << peers.errors;
        return peers.output;
    }

    TempDirectory home_;
    std::string state_;
};

}  // namespace nexar
