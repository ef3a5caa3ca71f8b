#pragma once

#include <cstdint>
#include <vector>

#include "base/address.hpp"
#include "base/random.hpp"
#include "support/child_process.hpp"
#include "support/test_cluster.hpp"

namespace nexar::testing {

/// Sends first packets of clients that do not exist, from invented addresses of 127.0.0.0/8 outside
/// of 127.0.0.0/24: half of them whole ones, each of which makes a server that takes it begin a
/// handshake, half random bytes behind a right header.
class FloodSender {
public:
    using Packet = std::vector<std::byte>;

    FloodSender(const Address& target, const TestCluster& cluster, std::uint64_t seed);
    FloodSender(const FloodSender&) = delete;
    FloodSender& operator=(const FloodSender&) = delete;
    ~FloodSender();

    /// Takes only processor time that nobody else wants, as a flood from other machines takes none.
    /// Sends at this rate, or as fast as it can, until the channel says something; says "flooding"
    /// before and how many were sent after.
    void run(double per_second, const Channel& channel);

private:
    static constexpr std::size_t kBatch = 64;

    void make_packets(const TestCluster& cluster);
    std::size_t send_batch();

    Address target_;
    Random random_;
    std::vector<Packet> packets_;
    std::vector<int> sockets_;  // each a port
    std::size_t next_packet_ = 0;
    std::size_t next_socket_ = 0;
};

}  // namespace nexar::testing
