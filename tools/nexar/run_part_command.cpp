// nexar run-part: `nexar run` starts it on another host by ssh. It reads the part to run from
// standard input, then the signals to forward. When the input ends or is silent for too long, the
// launcher is gone, and this part ends its ranks.

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>

#include "base/printable.hpp"
#include "base/time.hpp"
#include "base/try.hpp"
#include "command.hpp"
#include "run/part.hpp"
#include "run/supervisor.hpp"
#include "run/units.hpp"

namespace nexar {

namespace {

constexpr auto kPatience = std::chrono::seconds(30);

/// Reads byte by byte, so that the bytes after the line stay for the next reader.
Result<std::string> read_line() {
    const SteadyClock clock;
    const TimePoint deadline = clock.now() + kPatience;
    std::string line;
    while (line.size() < run::kMaxPartBytes) {
        pollfd polled{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - clock.now());
        if (left.count() <= 0)
            return Error(Errc::timed_out, "the launcher did not send the part to run in time");
        if (::poll(&polled, 1, static_cast<int>(left.count())) <= 0) continue;
        char byte = 0;
        const ssize_t n = ::read(STDIN_FILENO, &byte, 1);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return Error(Errc::closed,
                         "the launcher closed the connection before it sent the part to run");
        if (byte == '\n') return line;
        line.push_back(byte);
    }
    return Error(Errc::limit_exceeded, "the part to run that the launcher sent is too long");
}

/// The launcher hosts the seed, and the part's messages tell it which ranks have ended.
class MeetingElsewhere final : public run::Meeting {
public:
    explicit MeetingElsewhere(const std::string& join) : join_(join) {}

    Result<std::string> open() override { return join_; }
    // The launcher decides on restarts and sends a join string with each.
    Result<std::string> join_again() override { return join_; }
    bool formed() override { return true; }
    void on_rank_done(std::uint32_t /*rank*/) override {}

private:
    const std::string& join_;
};

Result<int> run_part() {
    NEXAR_TRY_VALUE(line, read_line());
    NEXAR_TRY_VALUE(part, run::decode_part(line));
    std::error_code error;
    std::filesystem::current_path(part.directory, error);
    if (error) {
        return Error(Errc::bad_config, fmt::format("cannot enter the directory {} on this host: {}",
                                                   printable(part.directory), error.message()));
    }
    auto units = run::rank_units(part);
    for (run::Unit& unit : units) unit.gets_input = false;  // the launcher's messages arrive there
    MeetingElsewhere meeting(part.join);
    return run::supervise({.units = std::move(units),
                           .grace = part.grace,
                           .is_part = true,
                           .world = part.world,
                           .host_timeout = part.host_timeout,
                           .failure = {.mode = part.on_failure}},
                          meeting);
}

}  // namespace

void add_run_part_command(CLI::App& app, Invocation& invocation) {
    CLI::App* const command =
        app.add_subcommand("run-part", "Runs a part of `nexar run` on this host");
    command->group(kHidden);
    command->callback([&invocation] {
        const auto code = run_part();
        if (!code) fmt::print(stderr, "nexar run: {}\n", code.error().what());
        invocation.exit_code = code ? *code : kExitFailure;
    });
}

}  // namespace nexar
