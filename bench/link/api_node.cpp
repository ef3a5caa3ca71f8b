#include "api_node.hpp"

#include <array>

#include "side.hpp"
#include "timing.hpp"

namespace nexar::bench {

ApiNode::ApiNode(const Party& party, bool server, const NodeOptions& options)
    : party_(&party),
      body_(detail::NodeBody::open(runtime::make_loop(options).value(),
                                   {.credentials = server ? party.server : party.client,
                                    .listen = loopback(0),
                                    .options = options})
                .value()),
      node_(body_) {
    if (server) form(0, port());
}

void ApiNode::form(std::uint32_t me, std::uint16_t server_port) {
    const std::array members{
        runtime::Member{.node = party_->server->identity().node, .address = loopback(server_port)},
        runtime::Member{.node = party_->client->identity().node, .address = loopback(0)}};
    body_->form(members, Rank(me)).value();
}

const Node& ApiNode::formed() {
    body_->wait_formed(body_->now() + kPatience).value();
    return node_;
}

}  // namespace nexar::bench
