#pragma once

#include <nexar/result.hpp>
#include <span>
#include <string_view>

#include "support/udp_fault/faults.hpp"

namespace nexar::udp_fault {

/// A fault as written on the command line: `--drop 0.01`.
struct FaultFlag {
    std::string_view name;   // without the dashes
    std::string_view value;  // placeholder for the value in the help
    std::string_view meaning;
    /// Sets the fault; the error quotes the text and says what is allowed.
    Result<void> (*apply)(FaultOptions& options, std::string_view text);
};

/// Every fault.
std::span<const FaultFlag> fault_flags() noexcept;

}  // namespace nexar::udp_fault
