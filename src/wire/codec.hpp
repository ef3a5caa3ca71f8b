#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "wire/frame.hpp"
#include "wire/messages.hpp"

/// Encodes and decodes frames. The encoding is canonical: a value has exactly one encoding and the
/// decoder rejects every other one, so a frame that decodes without skipped fields encodes to the
/// same bytes. These functions keep no state, do no I/O, and throw only std::bad_alloc; any thread
/// may call them.
///
/// They exist for the types of AnyMessage.
namespace nexar::wire {

/// Bytes of the whole frame, including its header.
template <class Message>
std::size_t encoded_size(const Message& message);

/// Writes the whole frame to the front of `out` and returns its size. Fails with invalid_argument,
/// and writes nothing, if `out` is too short or a field exceeds its limit.
template <class Message>
Result<std::size_t> encode(const Message& message, std::span<std::byte> out);

/// The whole frame or preamble in a new vector. A field that exceeds its limit is a bug in the
/// caller.
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

/// Decodes the body of a frame whose header came from decode_frame_header and has Message's type.
/// Allocates no memory for EagerHeader, BulkHeader, Heartbeat and Credit.
///
/// Fails with malformed, limit_exceeded or unsupported. The error names the message, the field, the
/// value and what is allowed; its length is bounded and it never repeats text from the peer.
template <class Message>
Result<Decoded<Message>> decode_body(const FrameHeader& header, std::span<const std::byte> body);

using Frame = Decoded<AnyMessage>;

/// Decodes one whole frame of any type; `bytes` must contain nothing else. Fails like
/// decode_frame_header and decode_body.
Result<Frame> decode_frame(std::span<const std::byte> bytes);

}  // namespace nexar::wire
