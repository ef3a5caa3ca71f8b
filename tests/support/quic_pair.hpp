#pragma once

#include <cstdint>
#include <functional>

#include "link/quic/endpoint.hpp"
#include "link/sim/datagram_net.hpp"
#include "support/link_end.hpp"
#include "support/test_cluster.hpp"

/// QUIC links on a DatagramNet, and everything that both ends observed.
namespace nexar::testing {

/// A host with all its links.
class Side final : public CarrierSide {
public:
    explicit Side(sim::DatagramHost& host) : CarrierSide(host), host_(&host) {}

    sim::DatagramHost& host() noexcept { return *host_; }
    quic::Endpoint& endpoint() noexcept { return host_->endpoint(); }

    /// Dials and returns this end of the link.
    LinkEnd& dial(const Address& remote, const security::Expectation& expected) {
        return dialed(host_->dial(remote, expected).value());
    }

private:
    sim::DatagramHost* host_;
};

struct PairOptions {
    std::uint64_t seed = 1;
    quic::LinkOptions client{};
    quic::LinkOptions server{};
    quic::GateLimits gate{};
    sim::DatagramWeather weather{};
    SharedCredentials client_credentials{};  // null: node 1 of the cluster
    SharedCredentials server_credentials{};  // null: node 2
};

/// Two hosts, and a link after connect().
class QuicPair {
public:
    /// The cluster that all pairs of this process share, because creating one takes milliseconds.
    static const TestCluster& cluster();
    /// Credentials of a node of that cluster; the same ones each time.
    static SharedCredentials node(std::uint64_t index);
    static quic::EndpointOptions endpoint_options(SharedCredentials credentials,
                                                  const quic::LinkOptions& link = {});

    explicit QuicPair(const PairOptions& options = {});

    /// Starts the link without waiting.
    LinkEnd& dial();
    /// Returns true when both ends are up, false if they are not within `at_most`.
    bool connect(Duration at_most = std::chrono::seconds(10));

    LinkEnd& client() noexcept { return *client_; }
    LinkEnd& server() { return server_side.accepted(); }

    /// Runs until `done` returns true, at most for `at_most`.
    bool run_until(const std::function<bool()>& done, Duration at_most = std::chrono::seconds(60)) {
        return world.run_until(done, at_most);
    }

    sim::World world;
    sim::DatagramNet net;
    Side client_side;
    Side server_side;

private:
    LinkEnd* client_ = nullptr;
};

}  // namespace nexar::testing
