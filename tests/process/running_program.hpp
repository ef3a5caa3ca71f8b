#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace nexar {

/// A program that runs while the test watches it. The destructor kills and reaps it.
class RunningProgram {
public:
    /// Starts the program with exactly this environment ("NAME=value") and these arguments, as the
    /// leader of its own process group.
    RunningProgram(const std::string& path, std::vector<std::string> arguments,
                   std::vector<std::string> environment);
    RunningProgram(const RunningProgram&) = delete;
    RunningProgram& operator=(const RunningProgram&) = delete;
    ~RunningProgram();

    pid_t id() const noexcept { return id_; }

    /// Waits until `text` has appeared `times` times in its output and errors; false on timeout.
    /// What the program wrote before that, to either stream, has been read too.
    bool writes(std::string_view text, int times = 1);
    /// Waits for its end. Returns the exit code, 128 plus the signal number, or -1 on timeout.
    int wait();

    /// Writes to its standard input, which close_input() closes.
    void type(std::string_view text) const;
    void close_input();
    /// Closes the reading end of its standard output.
    void close_output();

    void send(int signal) const;

    const std::string& output() const noexcept { return output_; }
    const std::string& errors() const noexcept { return errors_; }

private:
    void read_some(Duration within);

    pid_t id_ = -1;
    int input_end_ = -1;
    int output_end_ = -1;
    int errors_end_ = -1;
    std::string output_;
    std::string errors_;
};

/// The name of a process, as in /proc/PID/comm; empty after its end.
std::string name_of_process(pid_t process);

/// Whether a process has this variable ("NAME=value") in its environment; false for a zombie.
bool has_variable(pid_t process, const std::string& variable);

/// The processes that have this variable ("NAME=value") in their environment, in any session or
/// group; without zombies.
std::vector<pid_t> processes_with(const std::string& variable);

/// Waits until there are `wanted` such processes. Returns their number, also on timeout.
std::size_t wait_for_processes(const std::string& variable, std::size_t wanted);

}  // namespace nexar
