// A worker of a real deployment: one process of many, on one host or on several. It joins the
// cluster that it was told of, exchanges checked data with every other rank, and rank 0 prints how
// each pair is connected. Start it with
//
//     nexar run -n 4 -- ./seed_worker
//
// or, on any number of hosts, with `nexar seed` on one and NEXAR_JOIN=... ./seed_worker on each.

#include <chrono>
#include <cstdio>
#include <cstring>
#include <nexar/nexar.hpp>
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

struct Row {
    int from = 0, to = 0;
    char address[56] = {};
    double latency_us = 0, gigabytes_per_second = 0;
};

std::span<std::uint8_t> bytes_of(std::vector<Row>& rows) {
    return {reinterpret_cast<std::uint8_t*>(rows.data()), rows.size() * sizeof(Row)};
}

/// Ping-pong for the latency, then a large message each way that is compared byte by byte.
Row meet(nexar::Communicator& world, const nexar::PeerLink& peer) {
    const int me = world.rank();
    Row row{.from = me, .to = peer.rank};
    std::strncpy(row.address, peer.address.c_str(), sizeof row.address - 1);
    char ball = 0;
    const auto round_trip = [&] {
        if (me > peer.rank) world.send(std::span(&ball, 1), peer.rank, 1).wait();
        world.recv(std::span(&ball, 1), peer.rank, 1).wait();
        if (me < peer.rank) world.send(std::span(&ball, 1), peer.rank, 1).wait();
    };
    round_trip();  // the other may be busy with somebody else until now
    const auto start = Clock::now();
    for (int i = 0; i < kRounds; ++i) round_trip();
    row.latency_us = seconds_since(start) / kRounds / 2 * 1e6;

    std::vector<std::uint8_t> out(kBytes), in(kBytes);
    for (std::size_t i = 0; i < kBytes; ++i) out[i] = byte_at(me, peer.rank, i);
    const auto begun = Clock::now();
    nexar::Work<> sending = world.send(std::span(out), peer.rank, 2);
    world.recv(std::span(in), peer.rank, 2).wait();
    sending.wait();
    row.gigabytes_per_second = 2.0 * kBytes / seconds_since(begun) / 1e9;
    for (std::size_t i = 0; i < kBytes; ++i) {
        if (in[i] != byte_at(peer.rank, me, i)) throw std::runtime_error("wrong data");
    }
    return row;
}

}  // namespace

int main(int argc, char** argv) try {
    nexar::Node node = nexar::join(argc, argv);
    nexar::Communicator world = node.world();
    std::vector<Row> rows;
    for (const nexar::PeerLink& peer : node.peers()) rows.push_back(meet(world, peer));
    if (world.rank() != 0) {
        world.send(bytes_of(rows), 0, 3).wait();
        return 0;
    }
    std::printf("pair     reached at              latency us   GB/s\n");
    for (int rank = 1; rank < world.size(); ++rank) {
        std::vector<Row> theirs(static_cast<std::size_t>(world.size() - 1));
        world.recv(bytes_of(theirs), rank, 3).wait();
        for (const Row& row : theirs) {
            if (row.to < row.from) {  // each pair once
                std::printf("%2d - %-2d  %-22s  %10.1f  %5.2f\n", row.from, row.to, row.address,
                            row.latency_us, row.gigabytes_per_second);
            }
        }
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
