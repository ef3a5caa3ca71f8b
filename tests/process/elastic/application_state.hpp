#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nexar::testing {

/// The state of an application: bytes that depend on their place and on a number.
inline std::vector<std::byte> application_state(std::size_t bytes, std::uint64_t number) {
    std::vector<std::byte> state(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        state[i] = static_cast<std::byte>((i * 131 + (i >> 8U) * 7 + number * 29) & 0xffU);
    }
    return state;
}

}  // namespace nexar::testing
