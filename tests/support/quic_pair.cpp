#include "support/quic_pair.hpp"

#include <map>
#include <utility>

namespace nexar::testing {

const TestCluster& QuicPair::cluster() {
    static const TestCluster shared;
    return shared;
}

quic::EndpointOptions QuicPair::endpoint_options(SharedCredentials credentials,
                                                 const quic::LinkOptions& link) {
    quic::EndpointOptions options;
    options.link = link;
    options.credentials = std::move(credentials);
    return options;
}

SharedCredentials QuicPair::node(std::uint64_t index) {
    static std::map<std::uint64_t, SharedCredentials> made;
    SharedCredentials& credentials = made[index];
    if (credentials == nullptr) credentials = cluster().node(index);
    return credentials;
}

namespace {

quic::EndpointOptions client_options(const PairOptions& options) {
    return QuicPair::endpoint_options(
        options.client_credentials ? options.client_credentials : QuicPair::node(1),
        options.client);
}

quic::EndpointOptions server_options(const PairOptions& options) {
    auto chosen = QuicPair::endpoint_options(
        options.server_credentials ? options.server_credentials : QuicPair::node(2),
        options.server);
    chosen.gate = options.gate;
    return chosen;
}

}  // namespace

QuicPair::QuicPair(const PairOptions& options)
    : world(options.seed),
      net(world),
      client_side(net.add_host(sim::DatagramNet::address(1), client_options(options))),
      server_side(net.add_host(sim::DatagramNet::address(2), server_options(options))) {
    net.weather = options.weather;
}

LinkEnd& QuicPair::dial() {
    client_ = &client_side.dial(server_side.host().address(),
                                {.cluster = cluster().id(), .node = TestCluster::node_id(2)});
    return *client_;
}

bool QuicPair::connect(Duration at_most) {
    dial();
    return run_until(
        [&] { return client_->is_up() && server_side.accepted_count() != 0 && server().is_up(); },
        at_most);
}

}  // namespace nexar::testing
