#pragma once

#include <cstdint>
#include <memory>
#include <nexar/node.hpp>

#include "party.hpp"
#include "runtime/node_body.hpp"

namespace nexar::bench {

/// One of two nodes on this host, through the public API; closed by its destructor. The server has
/// rank 0.
class ApiNode {
public:
    /// `party` must outlive it.
    ApiNode(const Party& party, bool server, const NodeOptions& options = {});

    std::uint16_t port() const noexcept { return body_->address().port(); }

    /// Client only.
    void dial(std::uint16_t server_port) { form(server_port); }
    /// Waits until both nodes are connected.
    const Node& formed();
    Communicator world() { return formed().world(); }

    void close() { node_.close(); }

private:
    void form(std::uint16_t server_port);

    const Party* party_;
    std::shared_ptr<detail::NodeBody> body_;
    Node node_;
};

}  // namespace nexar::bench
