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
    not_supported,     // like unknown_value, where a later build may know it
    wrong_constant,    // allowed = the only value
    wrong_version,     // allowed = the version of this build
    bad_text,          // found = offset of the byte that is wrong
    field_length,      // found and allowed are bytes of an optional field
    field_order,       // found = id, allowed = the id before it
    unknown_critical,  // found = id
    default_written,   // an optional field holds what its absence means
    rule,              // `text` says what is allowed
};

/// A failure as plain numbers and names of ours; it becomes words only in `decode_error` and
/// `encode_error`, so that nothing is allocated before.
struct Fault {
    FaultKind kind = FaultKind::none;
    std::string_view field{};
    std::uint64_t found = 0;
    std::uint64_t allowed = 0;
    std::string_view text{};
};

/// Keeps the first fault of several: what follows it is often only its consequence.
class FirstFault {
public:
    bool any() const noexcept { return fault_.kind != FaultKind::none; }
    const Fault& operator*() const noexcept { return fault_; }

    // Out of line and cold, so that the path without a fault stays short.
    [[gnu::cold]] void keep(const Fault& fault) noexcept;

private:
    Fault fault_;
};

/// What the peer sent cannot be used. `message` is the name of what was being read.
Error decode_error(std::string_view message, const Fault& fault);

/// What the caller gave cannot be sent: invalid_argument.
Error encode_error(std::string_view message, const Fault& fault);

}  // namespace nexar::wire
