#include "run/ended.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>

namespace nexar::run {

Ended Ended::from_status(int status) noexcept {
    if (WIFSIGNALED(status)) {
        return {
            .by_signal = true, .number = WTERMSIG(status), .dumped_core = WCOREDUMP(status) != 0};
    }
    return {.number = WEXITSTATUS(status)};
}

std::string to_text(const Ended& ended) {
    if (!ended.by_signal) return fmt::format("exited with code {}", ended.number);
    return fmt::format("was killed by signal {} ({}){}", ended.number, signal_name(ended.number),
                       ended.dumped_core ? ", core dumped" : "");
}

std::string signal_name(int number) {
    const char* const name = ::sigabbrev_np(number);
    if (name != nullptr) return fmt::format("SIG{}", name);
    if (number >= SIGRTMIN && number <= SIGRTMAX) {
        return fmt::format("SIGRTMIN+{}", number - SIGRTMIN);
    }
    return fmt::format("signal {}", number);
}

}  // namespace nexar::run
