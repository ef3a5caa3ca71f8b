#pragma once

#include <cstdint>
#include <functional>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace nexar::run {

/// One process of a run, as its launcher sees it.
struct Unit {
    std::string name;  // "rank 2", "host b (ranks 2 to 3)"
    std::uint32_t first_rank = 0;
    std::string remote_nexar{};  // of a part on another host: the command that ssh runs there
    std::string output_prefix{};
    std::string errors_prefix{};
    std::vector<std::string> command;
    std::vector<std::string> environment;  // "NAME=value"
    bool gets_input = false;               // the launcher's standard input; else it is empty
    /// For the part of a run on another host, which is no rank: what it reads first, given the join
    /// string. Signals follow on the same way.
    std::function<std::string(const std::string& join)> header{};

    bool is_rank() const noexcept { return header == nullptr; }
};

struct SupervisorOptions {
    std::vector<Unit> units;
    Duration grace = std::chrono::seconds(10);
    /// This launcher is a part of another one's run: its standard input says which signals to pass
    /// on, and by its end that nobody wants this part any more.
    bool is_part = false;
    std::uint32_t world = 0;  // ranks of the whole run
    /// After this much silence launcher and part count each other as gone.
    Duration host_timeout = std::chrono::seconds(15);
};

/// How the ranks of a run find each other.
class Meeting {
public:
    virtual ~Meeting() = default;
    /// Gives the join string. Called after the process that keeps the units was forked, so that it
    /// may start threads; what it makes must outlive the run.
    virtual Result<std::string> open() = 0;
    /// A rank has exited with code 0; if it had not joined, the others cannot either.
    virtual void on_rank_done(std::uint32_t rank) = 0;
    /// What a rank said when it aborted the program, which it does before others fail by it.
    virtual std::optional<Error> aborted() { return std::nullopt; }
};

/// Runs units to their end: passes on what they write, line by line, and signals; says what became
/// of them, and leaves nothing behind (Keeper). Returns the exit code; an Error when nothing could
/// be started. To be called while the process has one thread; works in that of the caller.
Result<int> supervise(const SupervisorOptions& options, Meeting& meeting);

}  // namespace nexar::run
