#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"

namespace nexar::quic {

/// What every path takes that QUIC runs over at all (RFC 9000 14).
inline constexpr std::size_t kLeastDatagram = 1200;

/// Both ends of a way through the network. `local` may be "any": the network decides.
struct Path {
    Address local{};
    Address remote{};

    friend bool operator==(const Path&, const Path&) noexcept = default;
};

/// Datagrams of one path that follow each other in memory: all of `segment_bytes` but the last,
/// which may be shorter. At most 64, and at most 65487 bytes unless it is one alone.
struct PacketBatch {
    Path path{};
    std::span<const std::byte> bytes{};
    std::size_t segment_bytes = 0;
    std::uint8_t ecn = 0;  // RFC 3168; of every datagram of the batch
};

/// Where packets go: a UDP socket, a simulated network, a tunnel.
class PacketPath {
public:
    enum class Sent : std::uint8_t {
        done,     // gone, or lost: a datagram is never an error
        blocked,  // nothing was taken; try the same batch again when the path is writable
    };

    virtual ~PacketPath() = default;

    /// Does not keep the bytes.
    virtual Sent send(const PacketBatch& batch) = 0;

    /// The largest datagram that could pass to `remote`, as far as this host knows: what the
    /// interface's MTU leaves beside the headers. At least kLeastDatagram.
    virtual std::size_t largest_datagram(const Address& remote) = 0;
};

}  // namespace nexar::quic
