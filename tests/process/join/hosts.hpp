#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace nexar::testing {

/// How a rank reached another one, as Node::peers() reports it.
struct Reached {
    int from = 0;
    int to = 0;
    bool connected = false;
    bool dialed = false;
    std::string address{};
    std::string why{};
};

/// A process on its own host: a network namespace and a name that no resolver knows. It executes
/// commands; a failure there throws here.
class Host {
public:
    /// Starts the process on a new host, or on that of `neighbour`. Throws Error (unsupported) if
    /// this user may not create namespaces.
    explicit Host(const Host* neighbour = nullptr);

    pid_t id() const noexcept { return process_->id(); }

    void run(const std::string& command);

    /// Becomes the seed, at port 7400 of all addresses, and returns the join string.
    std::string serve(int world, const std::string& state_dir, const std::string& link = "auto");

    /// Joins as `rank`, at `port` of all addresses (0: a free one), and exchanges checked data with
    /// every other rank. exchanged() waits for it.
    void begin_join(int rank, int port, const std::string& join_string,
                    std::chrono::milliseconds formation_timeout = std::chrono::seconds(40));
    std::vector<Reached> exchanged();
    /// The text of the error with which the join failed; empty if it succeeded.
    std::string failure();

private:
    std::string answer();

    std::unique_ptr<ChildProcess> process_;
};

}  // namespace nexar::testing
