#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "wire/codec.hpp"

namespace nexar::fuzz {

/// Checks that a `message` decoded from `bytes` encodes, that the encoding decodes to the same
/// value, and that it equals `bytes` if no field was skipped.
template <class Message>
void check_canonical(std::span<const std::byte> bytes, const Message& message, bool skipped) {
    std::vector<std::byte> again(wire::encoded_size(message));
    const auto written = wire::encode(message, std::span<std::byte>(again));
    NEXAR_ASSERT(written.has_value(), "a decoded value must encode");
    NEXAR_ASSERT(*written == again.size(), "encoded_size must be exact");
    NEXAR_ASSERT(skipped ? again.size() < bytes.size() : std::ranges::equal(again, bytes),
                 "a value must have only one encoding");
    const auto header = wire::decode_frame_header(again);
    NEXAR_ASSERT(header.has_value(), "an encoded value must decode");
    const auto decoded = wire::decode_body<Message>(
        *header, std::span<const std::byte>(again).subspan(wire::kFrameHeaderBytes));
    NEXAR_ASSERT(decoded.has_value() && decoded->message == message,
                 "an encoded value must decode to the same value");
    NEXAR_ASSERT(decoded->skipped_fields == 0, "the encoder must not write unknown fields");
}

}  // namespace nexar::fuzz
