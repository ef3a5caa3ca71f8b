#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/address.hpp"

namespace nexar::quic {

/// The datagram size that every path for QUIC carries (RFC 9000 14).
inline constexpr std::size_t kLeastDatagram = 1200;

/// Both ends of a network path. `local` may be "any": the kernel chooses.
struct Path {
    Address local{};
    Address remote{};

    friend bool operator==(const Path&, const Path&) noexcept = default;
};

/// Datagrams of one path, contiguous in memory: all have `segment_bytes` except the last, which may
/// be shorter. At most 64, and at most 65487 bytes unless there is only one.
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
        done,     // sent or lost: a lost datagram is not an error
        blocked,  // nothing was sent; retry the same batch when the path is writable
    };

    virtual ~PacketPath() = default;

    /// Does not keep the bytes.
    virtual Sent send(const PacketBatch& batch) = 0;

    /// The largest datagram to `remote` that this host knows of: the interface's MTU minus the
    /// headers. At least kLeastDatagram.
    virtual std::size_t largest_datagram(const Address& remote) = 0;
};

}  // namespace nexar::quic
