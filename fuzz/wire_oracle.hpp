#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "wire/codec.hpp"

namespace nexar::fuzz {

/// What must hold when `bytes` decoded to `message`: it encodes, that decodes to the same value,
/// and when nothing was skipped it is the very same bytes.
template <class Message>
void check_canonical(std::span<const std::byte> bytes, const Message& message, bool skipped) {
    std::vector<std::byte> again(wire::encoded_size(message));
    const auto written = wire::encode(message, std::span<std::byte>(again));
    NEXAR_ASSERT(written.has_value(), "what decodes must encode");
    NEXAR_ASSERT(*written == again.size(), "encoded_size must be exact");
    NEXAR_ASSERT(skipped ? again.size() < bytes.size() : std::ranges::equal(again, bytes),
                 "a value has one encoding");
    const auto header = wire::decode_frame_header(again);
    NEXAR_ASSERT(header.has_value(), "what is encoded must decode");
    const auto decoded = wire::decode_body<Message>(
        *header, std::span<const std::byte>(again).subspan(wire::kFrameHeaderBytes));
    NEXAR_ASSERT(decoded.has_value() && decoded->message == message,
                 "what is encoded must decode to the same value");
    NEXAR_ASSERT(decoded->skipped_fields == 0, "nothing unknown is written");
}

}  // namespace nexar::fuzz
