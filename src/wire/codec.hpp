#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

/// Frames to bytes and back. Canonical: a value has exactly one encoding and the decoder refuses
/// every other one, so whatever decodes without skipped fields encodes to the same bytes. Nothing
/// here keeps state, does I/O or throws (but for std::bad_alloc); any thread may call.
///
/// The functions exist for the types of AnyMessage.
namespace nexar::wire {

/// Bytes of the whole frame, header included.
template <class Message>
std::size_t encoded_size(const Message& message);

/// Writes the whole frame to the front of `out` and returns its size. Fails with invalid_argument
/// when `out` is too short or a field breaks its limit; then nothing was written.
template <class Message>
Result<std::size_t> encode(const Message& message, std::span<std::byte> out);

/// The whole frame, or preamble, in memory of its own. A field that breaks its limit is a bug of
/// the caller.
template <class Message>
std::vector<std::byte> to_bytes(const Message& message) {
    std::vector<std::byte> frame(encoded_size(message));
    const auto size = encode(message, std::span<std::byte>(frame));
    NEXAR_ASSERT(size.has_value() && *size == frame.size());
    return frame;
}

template <class Message>
struct Decoded {
    Message message{};
    std::uint32_t skipped_fields = 0;  // optional fields that this build does not know
};

/// Reads the body of a frame whose header came from decode_frame_header and has Message's type.
/// EagerHeader, BulkHeader, Heartbeat and Credit take no memory.
///
/// Fails with malformed, limit_exceeded or unsupported, and names message, field, what was found
/// and what is allowed; the text is bounded and never repeats what the peer wrote.
template <class Message>
Result<Decoded<Message>> decode_body(const FrameHeader& header, std::span<const std::byte> body);

using Frame = Decoded<AnyMessage>;

/// Reads one whole frame of any type: `bytes` must hold nothing else. Fails as decode_frame_header
/// and decode_body do.
Result<Frame> decode_frame(std::span<const std::byte> bytes);

}  // namespace nexar::wire
