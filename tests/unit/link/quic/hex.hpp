#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace nexar::quic {

/// Bytes from hexadecimal digits, as in the examples of RFCs.
inline std::vector<std::uint8_t> unhex(std::string_view digits) {
    const auto value = [](char digit) {
        return static_cast<unsigned>(digit <= '9' ? digit - '0' : digit - 'a' + 10);
    };
    std::vector<std::uint8_t> bytes;
    for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
        bytes.push_back(static_cast<std::uint8_t>(value(digits[i]) * 16 + value(digits[i + 1])));
    }
    return bytes;
}

}  // namespace nexar::quic
