#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace nexar::testing {

/// How a rank reached another one, as Node::peers() says it.
struct Reached {
    int from = 0;
    int to = 0;
    bool connected = false;
    bool dialed = false;
    std::string address{};
    std::string why{};
};

/// A process on a host of its own: a network namespace and a name that no resolver knows. Does what
/// it is told and answers; what fails there throws here.
class Host {
public:
    /// On a new host, or on the one of `neighbour`. Throws Error (unsupported) where this user may
    /// not make namespaces.
    explicit Host(const Host* neighbour = nullptr);

    pid_t id() const noexcept { return process_->id(); }

    void run(const std::string& command);

    /// Becomes the seed, at port 7400 of all addresses, and gives the join string.
    std::string serve(int world, const std::string& state_dir);

    /// Joins as `rank`, at `port` of all addresses (0: a free one) and exchanges data that is
    /// checked with every other rank. Ends with exchanged().
    void begin_join(int rank, int port, const std::string& join_string,
                    std::chrono::milliseconds formation_timeout = std::chrono::seconds(40));
    std::vector<Reached> exchanged();
    /// The words of the error that it ended with instead; empty when it ended well.
    std::string failure();

private:
    std::string answer();

    std::unique_ptr<ChildProcess> process_;
};

}  // namespace nexar::testing
