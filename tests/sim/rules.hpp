#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/operation.hpp"

namespace nexar::testing {

/// A message that was sent: what its receiver must find.
struct Sent {
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t context = 0;
    std::uint64_t number = 0;  // among those of one sender to one receiver in one communicator
    std::uint64_t tag = 0;
    std::vector<std::byte> content{};
    port::ConstBytes region{};
    engine::SendOperation operation{};
    bool cancelled = false;
    bool unknown = false;  // cancelled, and nobody said whether it was received
    bool lost = false;     // with a receive that was cancelled while it arrived
    bool ended = false;
    bool received = false;
};

/// A receive, or a probe that takes the message, which is received later: both decide who gets it.
struct Received {
    std::size_t at = 0;
    std::size_t context = 0;
    std::uint64_t order = 0;
    engine::Pattern pattern{};
    std::vector<std::byte> memory{};
    port::Bytes region{};
    engine::ReceiveOperation operation{};
    engine::ReceiveOperation rest{};  // of what was taken
    bool ended = false;
    bool cancelled = false;
    bool left_over = false;  // still waited when all was over
    Sent* got = nullptr;
};

/// A probe that leaves the message where it is.
struct Probed {
    std::size_t at = 0;
    std::size_t context = 0;
    engine::ProbeOperation operation{};
    bool ended = false;
};

std::string describe(const Sent& sent);

/// Expects that every message which was not cancelled was received once, by a receive that wanted
/// it, and that messages and receives met in the order that MPI demands. When all is over: from the
/// order of sends and of receives alone, since the rules refer to that order.
void expect_rules_of_mpi(const std::vector<std::unique_ptr<Sent>>& sends,
                         const std::vector<std::unique_ptr<Received>>& receives);

}  // namespace nexar::testing
