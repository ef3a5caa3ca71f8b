#include "link/quic/udp_carrier.hpp"

#include <utility>

#include "base/try.hpp"

namespace nexar::quic {

Result<std::unique_ptr<UdpCarrier>> UdpCarrier::open(
    const Address& local, BufferPool& pool, EndpointOptions options, const UdpOptions& udp_options,
    const std::function<std::unique_ptr<PacketPath>(UdpSocket&)>& through) {
    std::unique_ptr<UdpCarrier> carrier(new UdpCarrier);
    NEXAR_TRY_VALUE(socket, UdpSocket::open(local, udp_options));
    carrier->socket_ = std::move(socket);
    if (through) carrier->through_ = through(*carrier->socket_);
    PacketPath& out = carrier->through_ ? *carrier->through_ : *carrier->socket_;
    carrier->endpoint_ = std::make_unique<Endpoint>(out, pool, std::move(options));
    return carrier;
}

bool UdpCarrier::on_ready(TimePoint now) {
    const std::uint64_t before = socket_->counts().datagrams_in;
    more_to_read_ = socket_->receive(kReceiveQuantum, [&](const UdpSocket::Arrival& arrival) {
        endpoint_->receive(now, arrival.path, arrival.ecn, arrival.bytes, arrival.segment_bytes);
    });
    if (socket_->has_refusals()) pass_refusals(now);
    return socket_->counts().datagrams_in != before;
}

void UdpCarrier::pass_refusals(TimePoint now) {
    socket_->take_refusals([&](const UdpSocket::Refusal& refusal) {
        endpoint_->refused(now, refusal.remote, std::span(refusal.quoted).first(refusal.bytes));
    });
}

void UdpCarrier::flush(TimePoint now) {
    endpoint_->flush(now);
    if (socket_->has_refusals()) pass_refusals(now);
}

std::optional<TimePoint> UdpCarrier::next_deadline() const {
    if (more_to_read_) return TimePoint{};
    return endpoint_->next_deadline();
}

}  // namespace nexar::quic
