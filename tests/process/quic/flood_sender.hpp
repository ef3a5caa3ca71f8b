#pragma once

#include <cstdint>
#include <vector>

#include "base/address.hpp"
#include "base/random.hpp"
#include "support/child_process.hpp"
#include "support/test_cluster.hpp"

namespace nexar::testing {

/// Sends first packets of clients that do not exist, from spoofed addresses in 127.0.0.0/8 outside
/// 127.0.0.0/24: half of them are valid and make a server begin a handshake, the others are random
/// bytes behind a valid header.
class FloodSender {
public:
    using Packet = std::vector<std::byte>;

    FloodSender(const Address& target, const TestCluster& cluster, std::uint64_t seed);
    FloodSender(const FloodSender&) = delete;
    FloodSender& operator=(const FloodSender&) = delete;
    ~FloodSender();

    /// Sends at this rate, or as fast as it can, until a message arrives on the channel. Reports
    /// "flooding" at the start and the number of packets at the end. Uses only idle processor time,
    /// because a flood from other machines uses none.
    void run(double per_second, const Channel& channel);

private:
    static constexpr std::size_t kBatch = 64;

    void make_packets(const TestCluster& cluster);
    std::size_t send_batch();

    Address target_;
    Random random_;
    std::vector<Packet> packets_;
    std::vector<int> sockets_;  // one port each
    std::size_t next_packet_ = 0;
    std::size_t next_socket_ = 0;
};

}  // namespace nexar::testing
