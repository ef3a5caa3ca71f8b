#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/identity.hpp"
#include "base/types.hpp"
#include "wire/frame.hpp"

/// The messages with which members reach members that they are not connected to: packets of other
/// pairs, and what routing tables need to know about links.
namespace nexar::wire {

// Values of Envelope::part. Numbers are stable.
inline constexpr std::uint8_t kWholePacket = 0;
inline constexpr std::uint8_t kFirstPart = 1;
inline constexpr std::uint8_t kLastPart = 2;  // the second of two parts

/// The front of a packet that two members exchange through others, or of a part of it. The packet
/// itself belongs to an end-to-end connection of `source` and `target`: relays can neither read nor
/// forge it. Both ranks say what a relay claims; only that connection proves who sent the packet.
struct Envelope {
    static constexpr FrameType kType = FrameType::envelope;

    Rank source{};
    Rank target{};          // not the source
    std::uint8_t hops = 1;  // links that the packet may still cross, 1 to kMaxHops
    std::uint8_t part = kWholePacket;
    std::uint16_t choice = 0;  // which of several next hops the source wants relays to prefer
    std::uint32_t number = 0;  // of the packet at its source, the same in both of its parts

    friend bool operator==(const Envelope&, const Envelope&) noexcept = default;
};

/// An envelope with a copy of its packet. Relays use wire/plain_envelope.hpp, which copies nothing.
struct EnvelopeFrame : Envelope {
    std::vector<std::byte> packet{};  // 1 to kMaxPacketBytes bytes

    friend bool operator==(const EnvelopeFrame&, const EnvelopeFrame&) = default;
};

/// Which of its neighbours a member cannot reach directly. Members forward it to each other, so the
/// sender need not be `origin`, who signs it.
struct LinkState {
    static constexpr FrameType kType = FrameType::link_state;

    Rank origin{};
    std::uint64_t incarnation = 0;          // of the origin
    Epoch epoch{};                          // the view of the origin, at least 1
    std::uint64_t version = 1;              // grows with every change, from 1 in each incarnation
    std::vector<Rank> down{};               // strictly ascending, without the origin
    std::array<std::byte, 32> key{};        // raw Ed25519 public key of the origin
    std::array<std::byte, 64> signature{};  // over signed_bytes()

    friend bool operator==(const LinkState&, const LinkState&) = default;
};

/// Asks the peer, which dialed the connection, to move it: only the side that dialed can.
struct PathRequest {
    static constexpr FrameType kType = FrameType::path_request;

    bool direct = false;  // to a direct path; otherwise to a tunnel

    friend bool operator==(const PathRequest&, const PathRequest&) noexcept = default;
};

/// What the origin signs: a prefix that no other signature of nexar has, the cluster, and the bytes
/// of the frame's body before the signature. The state must keep its limits.
std::vector<std::byte> signed_bytes(const ClusterId& cluster, const LinkState& state);

}  // namespace nexar::wire
