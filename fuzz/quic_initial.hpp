#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace nexar::fuzz {

using Bytes = std::vector<std::byte>;

/// A client's Initial packet (RFC 9000 17.2.2) of 1200 bytes or more that carries `frames`,
/// protected as in RFC 9001 5.2. Its keys are public, so a stranger can put anything into it;
/// without this step a fuzzer gets no further than the authentication tag.
Bytes seal_initial(std::span<const std::byte> frames);

/// The content of a client's first packet; nullopt if it is not one.
std::optional<Bytes> open_initial(std::span<const std::byte> packet);

}  // namespace nexar::fuzz
