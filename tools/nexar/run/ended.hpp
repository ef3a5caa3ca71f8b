#pragma once

#include <string>

namespace nexar::run {

/// How a process ended.
struct Ended {
    bool by_signal = false;
    int number = 0;  // of the signal, or the exit code
    bool dumped_core = false;

    /// From the waitpid() status of a process that has ended.
    static Ended from_status(int status) noexcept;

    bool failed() const noexcept { return by_signal || number != 0; }
    /// As in a shell: 128 plus the signal number for a signal.
    int exit_code() const noexcept { return by_signal ? 128 + number : number; }
};

/// "was killed by signal 11 (SIGSEGV), core dumped"; "exited with code 3".
std::string to_text(const Ended& ended);

/// "SIGTERM"; "signal 77" for one without a name.
std::string signal_name(int number);

}  // namespace nexar::run
