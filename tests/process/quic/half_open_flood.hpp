#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/address.hpp"
#include "base/buffer_pool.hpp"
#include "base/time.hpp"
#include "link/quic/endpoint.hpp"
#include "link/quic/udp_socket.hpp"
#include "support/child_process.hpp"

namespace nexar::testing {

/// Begins handshakes with a seed from many ports of one address, proves its address (Retry), and
/// never finishes one.
class HalfOpenFlood {
public:
    /// `from`: any address of this host; the port is ignored.
    HalfOpenFlood(const Address& target, const Address& from);

    /// Floods at this rate until a message arrives on the channel. Sends "flooding" after the first
    /// `warm_up` handshakes, and their total number at the end. Uses only idle processor time,
    /// because a flood from other machines uses none.
    void run(double per_second, std::uint64_t warm_up, const Channel& channel);

private:
    /// Sends through the socket that is currently chosen.
    class Ports final : public quic::PacketPath {
    public:
        explicit Ports(const Address& from);
        Sent send(const quic::PacketBatch& batch) override { return chosen().send(batch); }
        std::size_t largest_datagram(const Address& /*remote*/) override { return 1200; }

        quic::UdpSocket& chosen() { return *sockets_[chosen_]; }
        void choose_next() noexcept { chosen_ = (chosen_ + 1) % sockets_.size(); }
        std::size_t count() const noexcept { return sockets_.size(); }

    private:
        std::vector<std::unique_ptr<quic::UdpSocket>> sockets_;
        std::size_t chosen_ = 0;
    };

    void begin_one(TimePoint now);
    void answer_retries(TimePoint now);
    void forget_all();

    Address target_;
    BufferPool pool_;
    Ports ports_;
    std::unique_ptr<quic::Endpoint> endpoint_;
    SteadyClock clock_;
};

}  // namespace nexar::testing
