#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace nexar {

/// A program that runs while the test looks. Killed and reaped at the end, at the latest.
class RunningProgram {
public:
    /// With exactly this environment ("NAME=value") and these arguments. It leads a process group
    /// of its own.
    RunningProgram(const std::string& path, std::vector<std::string> arguments,
                   std::vector<std::string> environment);
    RunningProgram(const RunningProgram&) = delete;
    RunningProgram& operator=(const RunningProgram&) = delete;
    ~RunningProgram();

    pid_t id() const noexcept { return id_; }

    /// Waits until `text` has appeared so often in what it wrote; false when it does not in time.
    bool writes(std::string_view text, int times = 1);
    /// Its end: exit code, or 128 and the signal. -1 when it does not end in time.
    int wait();

    /// Written to its standard input, which is closed by close_input().
    void type(std::string_view text) const;
    void close_input();
    /// No longer reads what it writes.
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

/// The processes that have this variable ("NAME=value") in their environment, wherever they have
/// gone since; not those that ended and wait to be reaped.
std::vector<pid_t> processes_with(const std::string& variable);

/// Waits until there are so many; what there is then.
std::size_t wait_for_processes(const std::string& variable, std::size_t wanted);

}  // namespace nexar
