#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <string_view>

namespace nexar::wire {

/// Why a field cannot be read or written.
enum class FaultKind : std::uint8_t {
    none,
    truncated,         // found = bytes left, allowed = bytes needed
    trailing,          // found = bytes after the last field
    below,             // found and allowed are values
    above,             // found and allowed are values
    too_long,          // found and allowed are bytes
    too_many,          // found and allowed are entries
    unknown_bits,      // found = the flags, allowed = the known bits
    unknown_value,     // allowed = the last known value
    not_supported,     // like unknown_value, but a later build may know it
    wrong_constant,    // allowed = the only value
    wrong_version,     // allowed = the version of this build
    bad_text,          // found = offset of the invalid byte
    field_length,      // found and allowed are bytes of an optional field
    field_order,       // found = id, allowed = the previous id
    unknown_critical,  // found = id
    default_written,   // an optional field holds the value that its absence means
    rule,              // `text` says what is allowed
};

/// A failure as numbers and string constants. Only `decode_error` and `encode_error` turn it into a
/// message, so that nothing is allocated before.
struct Fault {
    FaultKind kind = FaultKind::none;
    std::string_view field{};
    std::uint64_t found = 0;
    std::uint64_t allowed = 0;
    std::string_view text{};
};

/// Keeps the first of several faults: later ones are often only its consequences.
class FirstFault {
public:
    bool any() const noexcept { return fault_.kind != FaultKind::none; }
    const Fault& operator*() const noexcept { return fault_; }

    // Out of line and cold, so that the path without a fault stays short.
    [[gnu::cold]] void keep(const Fault& fault) noexcept;

private:
    Fault fault_;
};

/// The error for invalid input from a peer. `message` names what was being decoded.
Error decode_error(std::string_view message, const Fault& fault);

/// The error for a value that cannot be sent: invalid_argument.
Error encode_error(std::string_view message, const Fault& fault);

}  // namespace nexar::wire
