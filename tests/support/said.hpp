#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "wire/codec.hpp"
#include "wire/preamble.hpp"

/// The bytes that a peer sends on its lanes and streams.
namespace nexar::testing {

using Bytes = std::vector<std::byte>;

template <class Message>
Bytes said(const Message& message) {
    Bytes bytes(wire::encoded_size(message));
    const auto size = wire::encode(message, std::span<std::byte>(bytes));
    NEXAR_ASSERT(size.has_value() && *size == bytes.size());
    return bytes;
}

/// Sets the field `size` of a message header, also to values that the encoder would reject.
Bytes with_size(Bytes frame, std::uint64_t size);

Bytes operator+(Bytes front, std::span<const std::byte> back);

/// The preamble of the stream that carries a message.
inline Bytes stream_of(ContextId context, std::uint64_t sequence) {
    return said(wire::Preamble{
        .lane = wire::Lane::bulk, .context = context, .sequence = Sequence(sequence)});
}

/// The frames written to a lane, without its preamble.
std::vector<wire::AnyMessage> frames_in(std::span<const std::byte> lane);

/// Only those of one type.
template <class Message>
std::vector<Message> frames_of(std::span<const std::byte> lane) {
    std::vector<Message> found;
    for (const wire::AnyMessage& any : frames_in(lane)) {
        if (const auto* message = std::get_if<Message>(&any)) found.push_back(*message);
    }
    return found;
}

}  // namespace nexar::testing
