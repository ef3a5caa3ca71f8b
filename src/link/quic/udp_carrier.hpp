#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <nexar/result.hpp>
#include <optional>

#include "link/quic/endpoint.hpp"
#include "link/quic/link_counters.hpp"
#include "link/quic/udp_socket.hpp"
#include "port/link.hpp"

namespace nexar::quic {

/// All QUIC links of a node, over its one UDP socket.
class UdpCarrier final : public port::Carrier {
public:
    /// What arrives in one call of on_ready() is bounded by this, so that writing gets its turn:
    /// one full batch. A sender with a small window waits for the acknowledgements.
    static constexpr std::size_t kReceiveQuantum = std::size_t{32} * 1024;

    /// `pool` must outlive it. `through` may stand between the endpoint and the socket, to lose
    /// packets on purpose; it gets the socket and must not outlive it.
    static Result<std::unique_ptr<UdpCarrier>> open(
        const Address& local, BufferPool& pool, EndpointOptions options,
        const UdpOptions& udp_options = {},
        const std::function<std::unique_ptr<PacketPath>(UdpSocket&)>& through = {});

    /// Shows its counters there from now on; the registry must outlive it. Once.
    Result<void> count_into(CounterRegistry& registry);

    Endpoint& endpoint() noexcept { return *endpoint_; }
    UdpSocket& socket() noexcept { return *socket_; }
    const Address& local() const noexcept { return socket_->local(); }

    int descriptor() const noexcept override { return socket_->descriptor(); }
    bool wants_write() const noexcept override { return endpoint_->blocked(); }
    void on_ready(TimePoint now) override;
    void flush(TimePoint now) override;
    std::optional<TimePoint> next_deadline() const override;
    std::optional<port::LinkEvent> poll_event() override { return endpoint_->poll_event(); }
    void forget(port::LinkId link) override { endpoint_->forget(link); }

private:
    UdpCarrier() = default;

    void pass_refusals(TimePoint now);

    std::unique_ptr<UdpSocket> socket_;
    std::unique_ptr<PacketPath> through_;
    std::unique_ptr<Endpoint> endpoint_;
    std::optional<LinkCounters> counters_{};
    bool more_to_read_ = false;
};

}  // namespace nexar::quic
