#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "support/child_process.hpp"

namespace nexar::chaos {

/// Hosts with a cable each into one switch that can be divided. A host is a network namespace.
class Networks {
public:
    /// Throws Error (unsupported) if this user may not create namespaces. Create it while the test
    /// has only one thread.
    explicit Networks(int hosts);

    /// A process in the network of the host.
    pid_t host(int index) const { return holders_.at(static_cast<std::size_t>(index))->id(); }
    static std::string address(int host);

    /// The hosts of the list reach each other, but none of the rest, and the other way round.
    void cut(const std::vector<int>& hosts);
    void heal() { cut({}); }

    /// Runs a shell command on a host, or in the network of the switch.
    void run(int host, const std::string& command);
    void run_in_switch(const std::string& command) { order(*switch_, command); }
    pid_t switch_host() const { return switch_->id(); }

private:
    static std::unique_ptr<testing::ChildProcess> hold();
    static void order(const testing::ChildProcess& holder, const std::string& command);

    std::unique_ptr<testing::ChildProcess> switch_;
    std::vector<std::unique_ptr<testing::ChildProcess>> holders_;
    std::vector<bool> apart_;
};

}  // namespace nexar::chaos
