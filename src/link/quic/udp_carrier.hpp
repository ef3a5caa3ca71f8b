#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nexar/result.hpp>
#include <optional>

#include "link/quic/endpoint.hpp"
#include "link/quic/udp_socket.hpp"
#include "port/link.hpp"

namespace nexar::quic {

/// All QUIC links of a node, over its one UDP socket.
class UdpCarrier final : public port::Carrier {
public:
    /// Limits the bytes that one call of on_ready() takes to one full batch, so that writing gets
    /// its turn: a sender with a small window is waiting for acknowledgements.
    static constexpr std::size_t kReceiveQuantum = std::size_t{32} * 1024;

    /// `pool` must outlive it. `through` may put a path between the endpoint and the socket, for
    /// example to drop packets; the path must not outlive the socket.
    static Result<std::unique_ptr<UdpCarrier>> open(
        const Address& local, BufferPool& pool, EndpointOptions options,
        const UdpOptions& udp_options = {},
        const std::function<std::unique_ptr<PacketPath>(UdpSocket&)>& through = {});

    // For tests and benches of QUIC itself; a node uses only port::Carrier.
    Endpoint& endpoint() noexcept { return *endpoint_; }
    UdpSocket& socket() noexcept { return *socket_; }

    int descriptor() const noexcept override { return socket_->descriptor(); }
    bool wants_write() const noexcept override { return endpoint_->blocked(); }
    bool on_ready(TimePoint now) override;
    void flush(TimePoint now) override;
    bool has_unsent() const noexcept override { return endpoint_->has_unsent(); }
    bool flush_is_urgent(TimePoint now) const noexcept override {
        return endpoint_->flush_is_urgent(now);
    }
    std::optional<TimePoint> next_deadline() const override;
    std::optional<port::LinkEvent> poll_event() override { return endpoint_->poll_event(); }
    void forget(port::LinkId link) override { endpoint_->forget(link); }
    Address local() const noexcept override { return socket_->local(); }
    Result<port::LinkId> dial(TimePoint now, const port::DialTarget& target) override {
        return endpoint_->dial(now, target);
    }
    std::optional<port::TunnelPacket> poll_tunnelled() override {
        return endpoint_->poll_tunnelled();
    }
    bool on_tunnelled(TimePoint now, const NodeId& from, port::ConstBytes packet) override {
        return endpoint_->on_tunnelled(now, from, packet);
    }
    void abandon(port::LinkId link) override { endpoint_->abandon(link); }
    void set_credentials(std::shared_ptr<const security::Credentials> credentials) override {
        endpoint_->set_credentials(std::move(credentials));
    }
    void set_protection(Protection protection) override { endpoint_->set_protection(protection); }
    void set_members(std::span<const Address> members) override { endpoint_->set_members(members); }
    void set_crowded(bool crowded) noexcept override { endpoint_->set_crowded(crowded); }

private:
    UdpCarrier() = default;

    void pass_refusals(TimePoint now);

    std::unique_ptr<UdpSocket> socket_;
    std::unique_ptr<PacketPath> through_;
    std::unique_ptr<Endpoint> endpoint_;
    bool more_to_read_ = false;
};

}  // namespace nexar::quic
