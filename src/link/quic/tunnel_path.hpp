#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "base/address.hpp"
#include "base/identity.hpp"
#include "link/quic/packet_path.hpp"
#include "port/tunnel.hpp"

namespace nexar::quic {

/// The local end of every tunnel. It differs from all addresses of sockets, so that a move between
/// a tunnel and a direct path is a move to another local address, which QUIC requires.
inline Address tunnel_local() noexcept {
    return Address::tunnel({});
}

/// Sets packets in tunnels aside for the owner of the endpoint, and passes all others on.
class TunnelPath final : public PacketPath {
public:
    /// What waits at most. Whatever is beyond it is lost: the senders then slow down.
    static constexpr std::size_t kMostBytes = std::size_t{4} * 1024 * 1024;

    /// `network` must outlive it.
    explicit TunnelPath(PacketPath& network) noexcept : network_(&network) {}

    Sent send(const PacketBatch& batch) override;
    std::size_t largest_datagram(const Address& remote) override;

    std::optional<port::TunnelPacket> poll();
    bool empty() const noexcept { return waiting_.empty(); }
    std::uint64_t lost() const noexcept { return lost_; }

private:
    PacketPath* network_;
    std::deque<port::TunnelPacket> waiting_;
    std::size_t bytes_ = 0;
    std::uint64_t lost_ = 0;
};

}  // namespace nexar::quic
