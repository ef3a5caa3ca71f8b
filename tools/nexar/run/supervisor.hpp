#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/time.hpp"
#include "run/survivors.hpp"

namespace nexar::run {

/// One process of a run, as its launcher sees it.
struct Unit {
    std::string name;  // "rank 2", "host b (ranks 2 to 3)"
    std::uint32_t first_rank = 0;
    std::uint32_t ranks = 1;     // more than one only for a part on another host
    std::string remote_nexar{};  // for a part on another host: the command that ssh runs
    std::string output_prefix{};
    std::string errors_prefix{};
    std::vector<std::string> command;
    std::vector<std::string> environment;   // "NAME=value"
    std::vector<std::size_t> processors{};  // that it is bound to; empty: all
    bool gets_input = false;                // the launcher's standard input; otherwise none
    bool restarts = false;                  // a new process may take its place
    /// For a part on another host, which is not a rank: makes the first line of its input from the
    /// join string. Messages follow on the same stream.
    std::function<std::string(const std::string& join)> header{};

    bool is_rank() const noexcept { return header == nullptr; }
};

struct SupervisorOptions {
    std::vector<Unit> units;
    Duration grace = std::chrono::seconds(10);
    /// This process is a part of another launcher's run: its standard input brings the signals to
    /// forward, and the end of the input means that the launcher is gone.
    bool is_part = false;
    std::uint32_t world = 0;  // number of ranks of the whole run
    /// After this much silence, launcher and part regard each other as gone.
    Duration host_timeout = std::chrono::seconds(15);
    FailureOptions failure{};
};

/// How the ranks of a run find each other.
class Meeting {
public:
    virtual ~Meeting() = default;
    /// Returns the join string. Called after the keeper was forked, so it may start threads.
    /// Objects that it creates must outlive the run.
    virtual Result<std::string> open() = 0;
    /// A join string for one process that joins later.
    virtual Result<std::string> join_again() = 0;
    /// True once the ranks have formed a world.
    virtual bool formed() = 0;
    /// A rank has exited with code 0. If it never joined, the others cannot form a world.
    virtual void on_rank_done(std::uint32_t rank) = 0;
    /// The abort that a rank reported, if any. A rank reports it before others fail because of it.
    virtual std::optional<Error> aborted() { return std::nullopt; }
};

/// Runs units to their end: forwards their output line by line, forwards signals to them, reports
/// how they ended, and leaves no process behind (Keeper). Returns the exit code, or an Error if
/// nothing could be started. Call it while the process has one thread; it runs in that thread.
Result<int> supervise(const SupervisorOptions& options, Meeting& meeting);

}  // namespace nexar::run
