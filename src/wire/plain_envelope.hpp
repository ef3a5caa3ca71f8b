#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <span>

#include "base/assert.hpp"
#include "wire/frame.hpp"
#include "wire/limits.hpp"
#include "wire/routing_messages.hpp"
#include "wire/scalar.hpp"

/// Envelopes in front of packets that nobody copies: the sender writes the front and the packet
/// into one buffer, a relay changes one byte of it, and the receiver reads the packet in place.
namespace nexar::wire {

/// Where an envelope has its hops.
inline constexpr std::size_t kHopsAt = kFrameHeaderBytes + 8;

/// An envelope and its packet, which is in the datagram that was decoded.
struct EnvelopeView : Envelope {
    std::span<const std::byte> packet{};
};

/// True if all fields are within their limits.
constexpr bool is_valid(const Envelope& envelope) noexcept {
    return envelope.source != envelope.target && envelope.source.value() <= kMaxRank &&
           envelope.target.value() <= kMaxRank && envelope.hops != 0 && envelope.hops <= kMaxHops &&
           envelope.part <= kLastPart;
}

/// What precedes a packet of `packet_bytes`, 1 to kMaxPacketBytes, or such a part of one. Invalid
/// arguments are a bug in the caller.
inline std::array<std::byte, kEnvelopeBytes> encode_envelope(const Envelope& envelope,
                                                             std::size_t packet_bytes) {
    NEXAR_ASSERT(is_valid(envelope), "the fields of an envelope must be within their limits");
    NEXAR_ASSERT(packet_bytes != 0 && packet_bytes <= kMaxPacketBytes);
    std::array<std::byte, kEnvelopeBytes> bytes{};
    std::byte* const at = bytes.data();
    at[0] = std::byte{kProtocolVersion};
    at[1] = static_cast<std::byte>(FrameType::envelope);
    store(at + 4, static_cast<std::uint32_t>(kEnvelopeBytes - kFrameHeaderBytes + packet_bytes));
    store(at + 8, envelope.source.value());
    store(at + 12, envelope.target.value());
    at[kHopsAt] = std::byte{envelope.hops};
    at[kHopsAt + 1] = std::byte{envelope.part};
    store(at + 18, envelope.choice);
    store(at + 20, envelope.number);
    return bytes;
}

/// The same as decode_envelope() for envelopes with optional fields and for faults; allocates.
Result<EnvelopeView> decode_unusual_envelope(std::span<const std::byte> datagram);

/// Decodes a datagram that is one envelope, to the last byte. The result refers to `datagram`.
/// Accepts and rejects the same bytes as decode_frame(), with the same errors, and allocates memory
/// only for an error or for optional fields, which no build writes yet. Fails with malformed for
/// frames of other types.
inline Result<EnvelopeView> decode_envelope(std::span<const std::byte> datagram) {
    if (datagram.size() <= kEnvelopeBytes || datagram.size() > kEnvelopeBytes + kMaxPacketBytes) {
        return decode_unusual_envelope(datagram);
    }
    const std::byte* const at = datagram.data();
    const std::uint64_t header = std::uint64_t{kProtocolVersion} |
                                 (static_cast<std::uint64_t>(FrameType::envelope) << 8U) |
                                 (std::uint64_t{datagram.size() - kFrameHeaderBytes} << 32U);
    EnvelopeView view{{.source = Rank(load<std::uint32_t>(at + 8)),
                       .target = Rank(load<std::uint32_t>(at + 12)),
                       .hops = std::to_integer<std::uint8_t>(at[kHopsAt]),
                       .part = std::to_integer<std::uint8_t>(at[kHopsAt + 1]),
                       .choice = load<std::uint16_t>(at + 18),
                       .number = load<std::uint32_t>(at + 20)},
                      datagram.subspan(kEnvelopeBytes)};
    if (load<std::uint64_t>(at) != header || !is_valid(view)) {
        return decode_unusual_envelope(datagram);
    }
    return view;
}

/// Changes the hops of an envelope that decode_envelope() accepted; 1 to kMaxHops.
inline void set_hops(std::span<std::byte> datagram, std::uint8_t hops) {
    NEXAR_ASSERT(datagram.size() > kEnvelopeBytes && hops != 0 && hops <= kMaxHops);
    datagram[kHopsAt] = std::byte{hops};
}

}  // namespace nexar::wire
