#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/address.hpp"
#include "base/random.hpp"
#include "link/quic/endpoint.hpp"
#include "link/quic/packet_path.hpp"
#include "link/sim/node_carrier.hpp"

namespace nexar::sim {

class DatagramNet;

struct Datagram {
    Address from{};
    Address to{};
    std::vector<std::byte> bytes{};
    std::uint8_t ecn = 0;
};

/// One QUIC endpoint at an address of a DatagramNet, and the carrier of its node.
///
/// A CarrierLoop or a node must drive it.
class DatagramHost final : public quic::PacketPath, public NodeCarrier {
public:
    DatagramHost(DatagramNet& net, const Address& address, quic::EndpointOptions options);

    quic::Endpoint& endpoint() noexcept { return *endpoint_; }
    const Address& address() const noexcept { return address_; }
    Address local() const noexcept override { return address_; }

    /// The MTU of the interface, which largest_datagram() returns.
    std::size_t interface_limit = 65000;
    /// While set, nothing can be sent.
    bool blocked = false;
    /// Called with every event before its node gets it; may change it, or return false to drop it.
    std::function<bool(port::LinkEvent&)> event_tap{};
    /// Bytes that wait while the host does not read, as in a socket's buffer; more bytes are lost.
    std::size_t inbox_limit = std::size_t{8} * 1024 * 1024;

    /// Kills the process and starts another one at the same address.
    void restart(quic::EndpointOptions options);

    /// Moves the host to another address, as a NAT does; the old one no longer works.
    void rebind(const Address& address);
    /// Adds an address to the host.
    void add_address(const Address& address) { more_.push_back(address); }

    bool has(const Address& address) const noexcept { return !off_ && at(address); }
    Result<port::LinkId> dial(const Address& remote, const security::Expectation& expected);
    Result<port::LinkId> dial(TimePoint now, const port::DialTarget& target) override {
        return endpoint_->dial(now, target);
    }
    std::optional<port::TunnelPacket> poll_tunnelled() override {
        return endpoint_->poll_tunnelled();
    }
    bool on_tunnelled(TimePoint now, const NodeId& from, port::ConstBytes packet) override {
        touch();
        return endpoint_->on_tunnelled(now, from, packet);
    }
    void abandon(port::LinkId link) override { endpoint_->abandon(link); }
    void set_credentials(std::shared_ptr<const security::Credentials> credentials) override {
        endpoint_->set_credentials(std::move(credentials));
    }
    void set_protection(port::Protection protection) override {
        endpoint_->set_protection(protection);
    }
    void set_members(std::span<const Address> members) override { endpoint_->set_members(members); }
    void set_crowded(bool crowded) noexcept override { endpoint_->set_crowded(crowded); }
    bool flush_is_urgent(TimePoint now) const noexcept override {
        return !events_.empty() || endpoint_->flush_is_urgent(now);
    }

    Sent send(const quic::PacketBatch& batch) override;
    std::size_t largest_datagram(const Address& /*remote*/) override { return interface_limit; }

    /// The world does not see calls of the links, so it asks the actor before every step.
    void driven_by(Actor& actor) override;
    /// For an actor that uses the links only in its own turns, or touches itself: the world asks it
    /// only then, which is much faster with many hosts.
    void driven_only_by(Actor& actor) { NodeCarrier::driven_by(actor); }
    bool wants_write() const noexcept override { return endpoint_->blocked(); }
    bool on_ready(TimePoint now) override;
    void flush(TimePoint now) override;
    std::optional<TimePoint> next_deadline() const override;
    std::optional<port::LinkEvent> poll_event() override;
    void forget(port::LinkId link) override { endpoint_->forget(link); }

private:
    friend class DatagramNet;

    quic::EndpointOptions seeded(quic::EndpointOptions options);
    void arrive(std::shared_ptr<Datagram> datagram);
    void switch_off();
    /// True even if the host is switched off.
    bool at(const Address& address) const noexcept;
    void take_refusal(const Datagram& refused);

    DatagramNet* net_;
    Address address_;
    std::vector<Address> more_;
    std::shared_ptr<Random> random_;
    std::unique_ptr<quic::Endpoint> endpoint_;
    std::deque<std::shared_ptr<Datagram>> inbox_;
    std::size_t inbox_bytes_ = 0;
    std::deque<port::LinkEvent> events_;
    bool off_ = false;
    bool refuses_ = false;  // off, but its machine still refuses datagrams
};

}  // namespace nexar::sim
