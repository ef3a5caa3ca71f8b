#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "process/run_fixture.hpp"

namespace nexar {

/// The line that a rank of a ring prints; each gets the number of its predecessor.
inline std::string says(int rank, int world) {
    return "rank " + std::to_string(rank) + " of " + std::to_string(world) + " got " +
           std::to_string(1000 + (rank + world - 1) % world) + "\n";
}

inline bool is_free(int port) {
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    const bool bound =
        ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(socket);
    return bound;
}

/// A UDP port that is free now and lies below the kernel's default ephemeral range (32768 to
/// 60999): a rank that starts before the seed would now and then get a port of that range.
inline int free_port() {
    constexpr int kFirst = 10000;
    constexpr int kPorts = 20000;
    for (int i = 0; i < kPorts; ++i) {
        const int port = kFirst + (::getpid() + i) % kPorts;
        if (is_free(port)) return port;
    }
    throw std::runtime_error("cannot find a free UDP port");
}

class RunJoin : public RunFixture {
protected:
    static constexpr const char* kSecret =
        "NEXAR_JOB_SECRET=8d1f4c0b7a5e92633f7e0a4d1c8b5926ee01c49ab7d25f38";

    /// Starts one rank with the variables of a launcher.
    std::unique_ptr<RunningProgram> start_rank(std::vector<std::string> variables) const {
        const auto shared = environment();
        variables.emplace_back("NEXAR_FORMATION_TIMEOUT=30s");
        variables.insert(variables.end(), shared.begin(), shared.end());
        return std::make_unique<RunningProgram>(NEXAR_JOINING_RANK, std::vector<std::string>{},
                                                variables);
    }

    void expect_ring(const std::vector<std::unique_ptr<RunningProgram>>& ranks) const {
        const int world = static_cast<int>(ranks.size());
        for (int rank = 0; rank < world; ++rank) {
            RunningProgram& program = *ranks.at(static_cast<std::size_t>(rank));
            EXPECT_EQ(program.wait(), 0) << "rank " << rank << ": " << program.errors();
            EXPECT_EQ(program.output(), says(rank, world)) << program.errors();
        }
    }
};

}  // namespace nexar
