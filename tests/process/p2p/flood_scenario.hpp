#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/time.hpp"

namespace nexar::testing {

struct FloodPlan {
    std::size_t message_bytes = 8;
    std::uint64_t messages = 0;
    Duration within{};
    std::string link = "quic";
};

/// One process sends to another that posts no receives, until it has as many sends in flight as a
/// program would. Neither process may grow by more than 64 MiB, works included; messages of another
/// communicator and with another tag still get through; and when the receiver finally receives,
/// every byte arrives.
void withstands_unwanted_messages(const FloodPlan& plan);

}  // namespace nexar::testing
