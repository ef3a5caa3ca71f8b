#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "process/run_hosts_fixture.hpp"
#include "support/temp_directory.hpp"

namespace nexar {

/// `nexar run --on-failure` on a program that joins and then waits for the test to say how each
/// process ends.
class RunFailure : public RunHosts {
protected:
    /// The program; `restarted` is what a restarted process runs instead, if it is not empty.
    std::string script(const std::string& restarted = "") const {
        const std::string instead =
            restarted.empty() ? "" : "[ -n \"$NEXAR_RESTARTED\" ] && { " + restarted + "; }; ";
        return "ulimit -c 0; export TEST_SLOT=${NEXAR_RANK-$NEXAR_LOCAL_RANK}; " + instead +
               "exec " NEXAR_SURVIVING_RANK;
    }

    /// Starts the program and waits until `ranks` of them have joined.
    std::unique_ptr<RunningProgram> joined(int ranks, std::vector<std::string> options,
                                           const std::string& text) const {
        for (const auto& gate : std::filesystem::directory_iterator(gates_.path())) {
            std::filesystem::remove(gate);
        }
        options.insert(options.begin(),
                       {"-n", std::to_string(ranks), "--env", "TEST_GATES=" + gates_.path()});
        auto program = start(std::move(options), text);
        EXPECT_TRUE(program->writes("joined as rank", ranks)) << program->errors();
        return program;
    }

    /// Lets the process in a slot ("2", or "2.1" after a restart) end by "exit 3" or "signal 9".
    void end(const std::string& slot, const std::string& how) const {
        std::ofstream(gates_.path() + "/gate." + slot) << how << " end";
    }

    TempDirectory gates_;
};

}  // namespace nexar
