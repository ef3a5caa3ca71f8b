#include "process/quic/wire.hpp"

#include <algorithm>
#include <utility>

namespace nexar::testing {

namespace {

udp_fault::Address to_proxy(const Address& address) {
    return udp_fault::Address::parse(address.text()).value();
}

udp_fault::Proxy start_proxy(const WireOptions& options, const Address& server) {
    udp_fault::ProxyOptions proxy;
    proxy.listen = to_proxy(loopback(options.v6));
    proxy.target = to_proxy(server);
    proxy.to_target = options.to_server;
    proxy.to_client = options.to_client;
    proxy.rebind = options.rebind;
    proxy.seed = options.seed;
    return udp_fault::Proxy::start(proxy).value();
}

auto counted(OutTally& tally) {
    return [&tally](quic::UdpSocket& socket) -> std::unique_ptr<quic::PacketPath> {
        return std::make_unique<CountingPath>(socket, tally);
    };
}

quic::EndpointOptions with_gate(quic::EndpointOptions options, const quic::GateLimits& gate) {
    options.gate = gate;
    return options;
}

}  // namespace

quic::PacketPath::Sent CountingPath::send(const quic::PacketBatch& batch) {
    const Sent sent = to_->send(batch);
    if (sent != Sent::done) return sent;
    tally_->bytes += batch.bytes.size();
    std::size_t left = batch.bytes.size();
    while (left > 0 && tally_->first_sizes.size() < OutTally::kFirst) {
        tally_->first_sizes.push_back(std::min(left, batch.segment_bytes));
        left -= tally_->first_sizes.back();
    }
    return sent;
}

WireOptions both_ways(const udp_fault::FaultOptions& faults, std::uint64_t seed) {
    WireOptions options;
    options.to_server = faults;
    options.to_client = faults;
    options.seed = seed;
    return options;
}

udp_fault::FaultOptions loses(double probability, std::uint32_t longest_run) {
    udp_fault::FaultOptions faults;
    faults.drop = {.probability = probability, .longest_run = longest_run};
    return faults;
}

udp_fault::FaultOptions corrupts(double probability) {
    udp_fault::FaultOptions faults;
    faults.corrupt = {.probability = probability, .bits = 3};
    return faults;
}

udp_fault::FaultOptions delays(Duration delay) {
    udp_fault::FaultOptions faults;
    faults.delay = delay;
    return faults;
}

quic::LinkOptions ethernet_link() {
    quic::LinkOptions link;
    link.largest_datagram = 1452;
    return link;
}

quic::EndpointOptions node_options(const TestCluster& cluster, std::uint64_t index,
                                   const quic::LinkOptions& link) {
    quic::EndpointOptions options;
    options.credentials = cluster.node(index);
    options.link = link;
    return options;
}

Address loopback(bool v6) {
    return Address::parse(v6 ? "[::1]:0" : "127.0.0.1:0").value();
}

Wire::Wire() : Wire(WireOptions()) {}

Wire::Wire(const WireOptions& options)
    : pool(PoolProfile::training()),
      server(loopback(options.v6), pool,
             with_gate(node_options(cluster, 0, options.link), options.gate), counted(server_out)),
      client(loopback(options.v6), pool, node_options(cluster, 1, options.link),
             counted(client_out)),
      proxy(start_proxy(options, server.address())),
      next_seed_(options.seed * 1'000'000) {
    driver.add(server);
    driver.add(client);
}

Address Wire::entrance() const {
    return Address::parse(udp_fault::describe(proxy.address())).value();
}

port::LinkId Wire::connect(Duration within) {
    const port::LinkId link = dial();
    const std::size_t before = server.came_up();
    const bool up = driver.run_until(
        [&] { return client.story(link).came_up && server.came_up() > before; }, within);
    if (!up) throw Error(Errc::timed_out, "no connection through the proxy: " + driver.describe());
    return link;
}

::testing::AssertionResult Wire::transfers(const Transfer& transfer) {
    std::vector<Payload> sent;
    const std::size_t had = server.received().size() + client.received().size();
    for (std::size_t i = 0; i < transfer.streams; ++i) {
        // Uneven lengths, so that no stream ends at a packet boundary.
        sent.push_back({.seed = ++next_seed_, .bytes = transfer.bytes_each - i});
        client.send(client_link(), sent.back(), transfer.memory);
        if (!transfer.both_ways) continue;
        sent.push_back({.seed = ++next_seed_, .bytes = transfer.bytes_each - 7 * i});
        server.send(server_link(), sent.back(), transfer.memory);
    }
    const bool done = driver.run_until(
        [&] {
            if (transfer.meanwhile) transfer.meanwhile();
            const bool lost = client.link() == nullptr || server.link() == nullptr;
            return lost ||
                   (server.received().size() + client.received().size() == had + sent.size() &&
                    client.sending() == 0 && server.sending() == 0);
        },
        transfer.within);
    if (!done) return ::testing::AssertionFailure() << "stalled: " << driver.describe();
    std::vector<Payload> received(server.received());
    received.insert(received.end(), client.received().begin(), client.received().end());
    for (const Payload& payload : sent) {
        if (std::ranges::find(received, payload) != received.end()) continue;
        return ::testing::AssertionFailure()
               << "payload " << payload.seed << " did not arrive: " << driver.describe();
    }
    if (!client.faults().empty() || !server.faults().empty()) {
        return ::testing::AssertionFailure() << driver.describe();
    }
    return ::testing::AssertionSuccess();
}

}  // namespace nexar::testing
