#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/operation.hpp"

namespace nexar::testing {

/// A sent message and the content that its receiver must find.
struct Sent {
    std::size_t from = 0;
    std::size_t to = 0;
    std::size_t context = 0;
    std::uint64_t number = 0;  // per sender, receiver and communicator
    std::uint64_t tag = 0;
    std::vector<std::byte> content{};
    port::ConstBytes region{};
    engine::SendOperation operation{};
    bool cancelled = false;
    bool unknown = false;  // cancelled, and the peer did not say whether it received it
    bool lost = false;     // dropped with a receive that was cancelled while it arrived
    bool ended = false;
    bool received = false;
};

/// A receive, or a matched probe whose message is received later. Both determine who gets the
/// message.
struct Received {
    std::size_t at = 0;
    std::size_t context = 0;
    std::uint64_t order = 0;
    engine::Pattern pattern{};
    std::vector<std::byte> memory{};
    port::Bytes region{};
    engine::ReceiveOperation operation{};
    engine::ReceiveOperation rest{};  // receives the message that a matched probe took
    bool ended = false;
    bool cancelled = false;
    bool left_over = false;  // still pending at the end of the run
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

/// Expects that every message that was not cancelled was received once, by a receive that it fits,
/// and that messages and receives matched in the order that MPI requires. Call it at the end of a
/// run: it uses only the order of sends and of receives, because the rules refer to that order.
void expect_mpi_rules(const std::vector<std::unique_ptr<Sent>>& sends,
                      const std::vector<std::unique_ptr<Received>>& receives);

}  // namespace nexar::testing
