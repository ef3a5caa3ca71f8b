#include "api_node.hpp"

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
    if (server) form(port());
}

void ApiNode::form(std::uint16_t server_port) {
    const auto member = [](const Identity& identity, std::uint32_t rank) {
        return Member{
            .node = identity.node, .incarnation = identity.incarnation, .rank = Rank(rank)};
    };
    View view{
        .epoch = Epoch(1),
        .members = {member(party_->server->identity(), 0), member(party_->client->identity(), 1)}};
    view.members[0].addresses = {loopback(server_port)};
    body_->form(view);
}

const Node& ApiNode::formed() {
    body_->wait_formed(body_->now() + kPatience).value();
    return node_;
}

}  // namespace nexar::bench
