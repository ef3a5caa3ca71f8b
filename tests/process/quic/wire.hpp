#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "base/buffer_pool.hpp"
#include "support/link_driver.hpp"
#include "support/test_cluster.hpp"
#include "support/udp_fault/proxy.hpp"

namespace nexar::testing {

/// Options of a link on a path with the MTU of Ethernet, which most fault tests use.
quic::LinkOptions ethernet_link();

/// Options of a node with the machine's clock and random source.
quic::EndpointOptions node_options(const TestCluster& cluster, std::uint64_t index,
                                   const quic::LinkOptions& link = ethernet_link());

Address loopback(bool v6 = false);

/// The packets sent, as seen by the layer above the socket.
struct OutTally {
    static constexpr std::size_t kFirst = 16;
    std::uint64_t bytes = 0;
    std::vector<std::size_t> first_sizes{};  // of the first kFirst datagrams
};

/// Passes everything on and counts it.
class CountingPath final : public quic::PacketPath {
public:
    /// Both must outlive it.
    CountingPath(quic::PacketPath& to, OutTally& tally) noexcept : to_(&to), tally_(&tally) {}

    Sent send(const quic::PacketBatch& batch) override;
    std::size_t largest_datagram(const Address& remote) override {
        return to_->largest_datagram(remote);
    }

private:
    quic::PacketPath* to_;
    OutTally* tally_;
};

struct WireOptions {
    udp_fault::FaultOptions to_server{};
    udp_fault::FaultOptions to_client{};
    udp_fault::RebindOptions rebind{};
    quic::LinkOptions link = ethernet_link();
    quic::GateLimits gate{};
    bool v6 = false;
    std::uint64_t seed = 1;
};

/// The same faults in both directions.
WireOptions both_ways(const udp_fault::FaultOptions& faults, std::uint64_t seed = 1);

udp_fault::FaultOptions loses(double probability, std::uint32_t longest_run = 0);
udp_fault::FaultOptions corrupts(double probability);
udp_fault::FaultOptions delays(Duration delay);

/// A client and a server in one thread, and the bad network between them in another.
class Wire {
public:
    Wire();
    explicit Wire(const WireOptions& options);

    TestCluster cluster;
    BufferPool pool;
    OutTally server_out;
    OutTally client_out;
    Station server;
    Station client;
    udp_fault::Proxy proxy;
    LinkDriver driver;

    /// The address at which the client dials the server.
    Address entrance() const;

    port::LinkId dial() { return client.dial(entrance(), {.cluster = cluster.id(), .node = {}}); }

    /// Dials and waits until both sides are up, or throws. Returns the client's end.
    port::LinkId connect(Duration within = patience(std::chrono::seconds(20)));
    port::Link& client_link() { return *client.link(); }
    port::Link& server_link() { return *server.link(); }

    /// Sends payloads of these sizes from the client, and the same back if requested, and waits
    /// until all have arrived.
    struct Transfer {
        std::size_t streams = 1;
        std::uint64_t bytes_each = 0;
        bool both_ways = false;
        Station::Memory memory = Station::Memory::generated;
        Duration within = patience(std::chrono::seconds(60));
        /// Called after every turn, to act in the middle of the transfer.
        std::function<void()> meanwhile{};
    };
    ::testing::AssertionResult transfers(const Transfer& transfer);

    udp_fault::Traffic traffic(udp_fault::Direction direction) const {
        return proxy.traffic(direction);
    }

private:
    std::uint64_t next_seed_;
};

inline constexpr auto kToServer = udp_fault::Direction::to_target;
inline constexpr auto kToClient = udp_fault::Direction::to_client;

}  // namespace nexar::testing
