#pragma once

#include <cstddef>
#include <span>

namespace nexar::fuzz {

/// What each harness defines: decodes the input, checks what the decoder promises (a broken promise
/// is a failed NEXAR_ASSERT), and returns whether the input was accepted.
bool accepts(std::span<const std::byte> input);

}  // namespace nexar::fuzz
