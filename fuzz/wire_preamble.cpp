#include <algorithm>
#include <array>
#include <cstddef>
#include <span>

#include "base/assert.hpp"
#include "harness.hpp"
#include "wire/preamble.hpp"

/// Preambles, complete and at the beginning of a stream.
namespace nexar::fuzz {

bool accepts_preamble(std::span<const std::byte> input) {
    const auto size = wire::preamble_size(input);
    const auto preamble = wire::decode_preamble(input);
    const bool whole = size.has_value() && *size == input.size();
    NEXAR_ASSERT(whole || !preamble, "only a complete preamble may decode");
    if (!preamble) {
        // After the first bytes, only the part of a call and the lane that continues can be
        // invalid.
        constexpr std::size_t kLaneAt = 5;
        const auto may_be_invalid = [](std::byte lane) {
            return lane == static_cast<std::byte>(wire::Lane::call) ||
                   lane == static_cast<std::byte>(wire::Lane::continued);
        };
        NEXAR_ASSERT(!whole || may_be_invalid(input[kLaneAt]),
                     "a complete preamble must decode unless it is for a call or continues a lane");
        return false;
    }
    std::array<std::byte, wire::kBulkPreambleBytes> again{};
    const auto written = wire::encode(*preamble, std::span<std::byte>(again));
    NEXAR_ASSERT(written.has_value() && *written == wire::encoded_size(*preamble));
    NEXAR_ASSERT(std::ranges::equal(std::span(again).first(*written), input),
                 "a value must have only one encoding");
    return true;
}

}  // namespace nexar::fuzz
