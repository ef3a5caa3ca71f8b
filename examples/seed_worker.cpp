// One of many processes, on one host or on several. It joins the cluster, exchanges data with every
// other rank and checks it; rank 0 prints how each pair is connected. Start it with
// `nexar run -n 4 -- ./seed_worker`, or with `nexar seed` on one host and
// `NEXAR_JOIN=... ./seed_worker` on each.
#include <chrono>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kBytes = std::size_t{16} << 20U;
constexpr int kRounds = 50;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

std::uint8_t byte_at(int from, int to, std::size_t i) {
    return static_cast<std::uint8_t>(7 * from + 13 * to + static_cast<int>(i % 251));
}

/// Measures the latency by ping-pong, then exchanges large messages and compares every byte.
std::string meet(const nexar::Communicator& world, const nexar::PeerLink& peer) {
    const int me = world.rank();
    char ball = 0;
    const auto round_trip = [&] {
        if (me > peer.rank) world.send(ball, peer.rank, 1).wait();
        ball = world.recv<char>(peer.rank, 1).wait();
        if (me < peer.rank) world.send(ball, peer.rank, 1).wait();
    };
    round_trip();  // the other rank may have been busy with a third one until now
    const auto start = Clock::now();
    for (int i = 0; i < kRounds; ++i) round_trip();
    const double latency_us = seconds_since(start) / kRounds / 2 * 1e6;

    std::vector<std::uint8_t> out(kBytes), in(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) out[i] = byte_at(me, peer.rank, i);
    const auto begun = Clock::now();
    nexar::wait_all(world.send(out, peer.rank, 2), world.recv(in, peer.rank, 2));
    const double gigabytes_per_second = 2.0 * kBytes / seconds_since(begun) / 1e9;
    for (std::size_t i = 0; i < kBytes; ++i) {
        if (in[i] != byte_at(peer.rank, me, i)) throw std::runtime_error("wrong data");
    }
    char line[128];
    std::snprintf(line, sizeof line, "%2d - %-2d  %-22s  %10.1f  %5.2f\n", me, peer.rank,
                  peer.address.c_str(), latency_us, gigabytes_per_second);
    return line;
}

}  // namespace

int main(int argc, char** argv) try {
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    std::string lines;
    for (const nexar::PeerLink& peer : node.peers()) {
        const std::string line = meet(world, peer);
        if (peer.rank < world.rank()) lines += line;  // each pair once
    }
    const std::vector<char> table = world.gather_v(lines, 0).wait().elements;
    if (world.rank() != 0) return 0;
    std::printf("pair     address                 latency us   GB/s\n");
    std::fwrite(table.data(), 1, table.size(), stdout);
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
