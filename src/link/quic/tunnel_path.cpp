#include "link/quic/tunnel_path.hpp"

#include <algorithm>
#include <utility>

namespace nexar::quic {

namespace {

/// Relays carry what fits into the datagrams of their links, so the size that gets through is
/// discovered. Packets that are too large for the first link are lost without cost.
constexpr std::size_t kLargestTunnelled = 65'000;

}  // namespace

PacketPath::Sent TunnelPath::send(const PacketBatch& batch) {
    if (!batch.path.remote.is_tunnel()) return network_->send(batch);
    const NodeId to(batch.path.remote.tunnel_end());
    for (auto rest = batch.bytes; !rest.empty();) {
        const auto packet = rest.first(std::min(batch.segment_bytes, rest.size()));
        rest = rest.subspan(packet.size());
        if (bytes_ + packet.size() > kMostBytes) {
            ++lost_;
            continue;
        }
        bytes_ += packet.size();
        waiting_.push_back({.to = to, .bytes = {packet.begin(), packet.end()}});
    }
    return Sent::done;
}

std::size_t TunnelPath::largest_datagram(const Address& remote) {
    return remote.is_tunnel() ? kLargestTunnelled : network_->largest_datagram(remote);
}

std::optional<port::TunnelPacket> TunnelPath::poll() {
    if (waiting_.empty()) return std::nullopt;
    port::TunnelPacket first = std::move(waiting_.front());
    waiting_.pop_front();
    bytes_ -= first.bytes.size();
    return first;
}

}  // namespace nexar::quic
