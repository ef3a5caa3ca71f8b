#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "process/program.hpp"
#include "process/running_program.hpp"

namespace nexar {

inline std::vector<std::string> sorted_lines(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> lines;
    for (std::string line; std::getline(stream, line);) lines.push_back(line);
    std::ranges::sort(lines);
    return lines;
}

/// Starts `nexar run` on shell scripts. An environment variable marks all processes of the run, so
/// that tests find every one of them.
class RunFixture : public testing::Test {
protected:
    RunFixture() {
        static std::atomic<int> number{0};
        mark_ = "TEST_MARK=" + std::to_string(::getpid()) + "." + std::to_string(++number);
    }
    ~RunFixture() override {
        EXPECT_EQ(wait_for_processes(mark_, 0), 0U) << "processes were left behind";
    }

    const std::string& mark() const { return mark_; }

    std::vector<std::string> environment() const {
        return {"HOME=/nowhere", "PATH=" + path_, mark_};
    }

    static std::vector<std::string> command_line(std::vector<std::string> arguments,
                                                 const std::string& script) {
        arguments.insert(arguments.begin(), "run");
        arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
        return arguments;
    }

    /// Runs to the end.
    Outcome run(std::vector<std::string> arguments, const std::string& script) const {
        return run_program(NEXAR_COMMAND, command_line(std::move(arguments), script),
                           environment());
    }

    std::unique_ptr<RunningProgram> start(std::vector<std::string> arguments,
                                          const std::string& script) const {
        return std::make_unique<RunningProgram>(
            NEXAR_COMMAND, command_line(std::move(arguments), script), environment());
    }

    std::string mark_;
    std::string path_ = "/usr/local/bin:/usr/bin:/bin";
};

}  // namespace nexar
