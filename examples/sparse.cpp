// A cluster in which each rank connects to few others, and reaches the rest through them. Start it
// with
//
//     nexar run -n 8 --nexar-topology=hypercube --nexar-link=quic -- ./sparse
//
// Every rank shows its neighbours and its route to each other rank, sends a message to the rank
// that is farthest away, and takes part in an all-reduce. Nothing in the program depends on the
// topology.
#include <algorithm>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

/// A connection is opened when two ranks first communicate.
void greet_everybody(const nexar::Communicator& world) {
    std::vector<nexar::Work<>> greetings;
    for (int rank = 0; rank < world.size(); ++rank) greetings.push_back(world.send('!', rank));
    for (int rank = 0; rank < world.size(); ++rank) {
        if (world.recv<char>(rank).wait() != '!') throw std::runtime_error("a greeting is wrong");
    }
    for (nexar::Work<>& greeting : greetings) greeting.wait();
}

std::string line_of(int rank, const std::vector<nexar::PeerLink>& peers) {
    std::string neighbours;
    std::string others;
    for (const nexar::PeerLink& peer : peers) {
        const std::string name = " " + std::to_string(peer.rank);
        if (peer.hops == 1) {
            neighbours += name;
        } else {
            others += name + " through " + std::to_string(peer.via) + " (" +
                      std::to_string(peer.hops) + " hops)";
        }
    }
    return std::to_string(rank) + ": neighbours" + neighbours + "; relayed" + others + "\n";
}

/// Sends a message to the farthest rank. Returns how many ranks have sent theirs to this one.
int write_to(int farthest, const nexar::Communicator& world) {
    const int me = world.rank();
    const std::vector<int> farthest_of = world.all_gather(farthest).wait();
    auto sent = world.send(100 * me + farthest, farthest, 1);
    int received = 0;
    for (int rank = 0; rank < world.size(); ++rank) {
        if (farthest_of[static_cast<std::size_t>(rank)] != me) continue;
        if (world.recv<int>(rank, 1).wait() != 100 * rank + me) {
            throw std::runtime_error("a message is wrong");
        }
        ++received;
    }
    sent.wait();
    return received;
}

}  // namespace

int main(int argc, char** argv) try {
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    greet_everybody(world);
    const std::vector<nexar::PeerLink> peers = node.peers();
    const auto farthest = std::ranges::max_element(peers, {}, &nexar::PeerLink::hops);
    if (farthest == peers.end()) throw std::runtime_error("start at least two ranks");

    const int letters = world.all_reduce(write_to(farthest->rank, world), nexar::sum).wait();
    if (letters != world.size()) throw std::runtime_error("a message is missing");
    std::vector<double> values(1000, world.rank() + 1);
    world.all_reduce(values, nexar::sum).wait();
    const double expected = world.size() * (world.size() + 1) / 2.0;
    if (std::ranges::any_of(values, [&](double value) { return value != expected; })) {
        throw std::runtime_error("the all-reduce gave a wrong sum");
    }

    const std::string line = line_of(world.rank(), peers);
    const std::vector<char> lines = world.gather_v(line, 0).wait().elements;
    const int hops = world.all_reduce(farthest->hops, nexar::max).wait();
    if (world.rank() == 0) {
        std::fwrite(lines.data(), 1, lines.size(), stdout);
        std::printf("%d messages and an all-reduce are right; hops on the longest route: %d\n",
                    letters, hops);
    }
    // Relays stay until everybody has what it needs.
    world.barrier().wait();
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
