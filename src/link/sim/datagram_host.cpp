#include "link/sim/datagram_host.hpp"

#include <algorithm>
#include <utility>

#include "link/sim/datagram_net.hpp"

namespace nexar::sim {

namespace {
// Bounds the bytes that one call of on_ready() takes, so that writing gets its turn.
constexpr std::size_t kReceiveQuantum = std::size_t{128} * 1024;
}  // namespace

DatagramHost::DatagramHost(DatagramNet& net, const Address& address, quic::EndpointOptions options)
    : NodeCarrier(net.world()),
      net_(&net),
      address_(address),
      random_(std::make_shared<Random>(net.world().random().fork())) {
    endpoint_ = std::make_unique<quic::Endpoint>(*this, net.pool(), seeded(std::move(options)));
}

quic::EndpointOptions DatagramHost::seeded(quic::EndpointOptions options) {
    if (!options.random) {
        options.random = [random = random_](std::span<std::uint8_t> out) {
            for (std::uint8_t& b : out) b = static_cast<std::uint8_t>(random->next() >> 56U);
        };
    }
    return options;
}

void DatagramHost::restart(quic::EndpointOptions options) {
    endpoint_.reset();
    inbox_.clear();
    inbox_bytes_ = 0;
    events_.clear();
    endpoint_ = std::make_unique<quic::Endpoint>(*this, net_->pool(), seeded(std::move(options)));
}

void DatagramHost::switch_off() {
    off_ = true;
    inbox_.clear();
    events_.clear();
    if (driver() != nullptr) world().remove(*driver());
}

void DatagramHost::rebind(const Address& address) {
    address_ = address;
}

bool DatagramHost::at(const Address& address) const noexcept {
    return address == address_ || std::ranges::find(more_, address) != more_.end();
}

void DatagramHost::take_refusal(const Datagram& refused) {
    constexpr std::size_t kQuoted = 64;  // as a UDP socket reads
    const std::span<const std::byte> bytes(refused.bytes);
    endpoint_->refused(world().now(), refused.to, bytes.first(std::min(bytes.size(), kQuoted)));
    touch();
}

Result<port::LinkId> DatagramHost::dial(const Address& remote,
                                        const security::Expectation& expected) {
    return endpoint_->dial(world().now(), remote, expected);
}

quic::PacketPath::Sent DatagramHost::send(const quic::PacketBatch& batch) {
    if (blocked) return Sent::blocked;
    const bool chosen = !batch.path.local.is_any() && has(batch.path.local);
    for (auto rest = batch.bytes; !rest.empty();) {
        const auto bytes = rest.first(std::min(rest.size(), batch.segment_bytes));
        rest = rest.subspan(bytes.size());
        net_->carry(*this, {.from = chosen ? batch.path.local : address_,
                            .to = batch.path.remote,
                            .bytes = {bytes.begin(), bytes.end()},
                            .ecn = batch.ecn});
    }
    return Sent::done;
}

void DatagramHost::driven_by(Actor& actor) {
    world().always_ask(actor);
    NodeCarrier::driven_by(actor);
}

void DatagramHost::arrive(std::shared_ptr<Datagram> datagram) {
    if (inbox_bytes_ + datagram->bytes.size() > inbox_limit) return;
    inbox_bytes_ += datagram->bytes.size();
    inbox_.push_back(std::move(datagram));
    touch();
}

bool DatagramHost::on_ready(TimePoint now) {
    const bool arrived = !inbox_.empty();
    for (std::size_t taken = 0; !inbox_.empty() && taken < kReceiveQuantum;) {
        const std::shared_ptr<Datagram> datagram = std::move(inbox_.front());
        inbox_.pop_front();
        const std::size_t size = datagram->bytes.size();
        inbox_bytes_ -= size;
        taken += size;
        endpoint_->receive(now, {.local = datagram->to, .remote = datagram->from}, datagram->ecn,
                           datagram->bytes, std::max<std::size_t>(size, 1));
    }
    return arrived;
}

void DatagramHost::flush(TimePoint now) {
    if (off_) return;
    endpoint_->flush(now);
    while (auto event = endpoint_->poll_event()) events_.push_back(std::move(*event));
}

std::optional<port::LinkEvent> DatagramHost::poll_event() {
    while (!events_.empty()) {
        port::LinkEvent event = std::move(events_.front());
        events_.pop_front();
        world().trace(event.link.value(), event.what.index());
        if (!event_tap || event_tap(event)) return event;
    }
    return std::nullopt;
}

std::optional<TimePoint> DatagramHost::next_deadline() const {
    if (off_) return std::nullopt;
    if (!inbox_.empty() || !events_.empty()) return TimePoint::min();
    if (endpoint_->blocked()) {
        if (blocked) return std::nullopt;
        return TimePoint::min();
    }
    return endpoint_->next_deadline();
}

}  // namespace nexar::sim
