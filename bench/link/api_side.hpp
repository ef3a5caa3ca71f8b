#pragma once

#include <cstdint>
#include <memory>
#include <nexar/communicator.hpp>

#include "api_node.hpp"
#include "message_ring.hpp"
#include "side.hpp"

namespace nexar::bench {

/// One of two nodes, through the public API. The server has rank 0.
class ApiSide final : public Side {
public:
    /// `party` and `ring` must outlive it.
    ApiSide(bool server, const Contender& how, const Party& party, MessageRing& ring);

    std::uint16_t port() const noexcept { return node_.port(); }

    /// Client: connects to a server on this host.
    void dial(std::uint16_t port);
    /// Server: waits for the client.
    void accept();

    void send(std::size_t messages) override;
    void receive(std::size_t messages) override;
    void settle() override {}
    std::vector<double> ping(const PingPlan& plan) override;
    void echo(std::size_t bytes) override;
    void leave() override;
    void stay() override;
    SideNotes notes() override { return {}; }

private:
    int other_;
    MessageRing* ring_;
    ApiNode node_;
    std::unique_ptr<Communicator> world_;  // set once it is formed
};

}  // namespace nexar::bench
