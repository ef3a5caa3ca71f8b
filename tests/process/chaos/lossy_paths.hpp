#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "process/chaos/networks.hpp"
#include "support/child_process.hpp"

namespace nexar::chaos {

/// Makes the hosts 1 to `ranks` reach each other only through fault proxies that lose packets. Each
/// host gets a second address, which leads the others to its proxy. The ranks must listen at kPort
/// of all addresses. Host 0 stays reachable without loss.
class LossyPaths {
public:
    LossyPaths(Networks& networks, int ranks, double loss, std::uint64_t seed);

    /// What the proxies did so far.
    std::string describe() const;

    static constexpr int kPort = 7401;

private:
    std::unique_ptr<testing::ChildProcess> proxies_;
};

}  // namespace nexar::chaos
