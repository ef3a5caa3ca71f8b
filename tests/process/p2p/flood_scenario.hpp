#pragma once

#include <cstddef>
#include <cstdint>

#include "base/time.hpp"

namespace nexar::testing {

struct FloodPlan {
    std::size_t message_bytes = 8;
    std::uint64_t messages = 0;
    Duration within{};
};

/// One process sends to another one that asks for nothing, until its works are as many as a program
/// would have under way. The memory of neither may grow by more than 64 MiB, works and all;
/// messages of another communicator and of another tag get through; and when the receiver asks at
/// last, every byte arrives.
void withstands_unwanted_messages(const FloodPlan& plan);

}  // namespace nexar::testing
