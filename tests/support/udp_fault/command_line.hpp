#pragma once

#include <nexar/result.hpp>
#include <span>
#include <string_view>

#include "support/udp_fault/faults.hpp"

namespace nexar::udp_fault {

/// A fault as people write it: `--drop 0.01`.
struct FaultFlag {
    std::string_view name;   // without the dashes
    std::string_view value;  // what stands for the value in the help
    std::string_view meaning;
    /// Sets it; the error quotes the text and says what is allowed.
    Result<void> (*apply)(FaultOptions& options, std::string_view text);
};

/// Every fault there is.
std::span<const FaultFlag> fault_flags() noexcept;

}  // namespace nexar::udp_fault
