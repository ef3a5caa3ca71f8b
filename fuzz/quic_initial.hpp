#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace nexar::fuzz {

using Bytes = std::vector<std::byte>;

/// A client's Initial packet (RFC 9000 17.2.2) of 1200 bytes or more that carries `frames`,
/// protected as RFC 9001 5.2 says. Its keys are known to everyone, so a stranger can say in it
/// whatever it likes: without this step a fuzzer gets no further than the tag.
Bytes seal_initial(std::span<const std::byte> frames);

/// What a client's first packet carries; nothing when it is none.
std::optional<Bytes> open_initial(std::span<const std::byte> packet);

}  // namespace nexar::fuzz
