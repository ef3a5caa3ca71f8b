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

/// Begins handshakes with a seed from many ports of one address, proves that it receives there
/// (Retry), and never finishes one.
class HalfOpenFlood {
public:
    /// `from`: any address of this host; its port does not count.
    HalfOpenFlood(const Address& target, const Address& from);

    /// Floods at this rate until the channel says something. Says "flooding" when the first
    /// `warm_up` handshakes have been begun, and how many there were at the end. Takes only
    /// processor time that nobody else wants, as a flood from other machines takes none.
    void run(double per_second, std::uint64_t warm_up, const Channel& channel);

private:
    /// Sends through the socket that is chosen at the time.
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
