// A ring of ranks in one process, which is handy for tests and experiments. Each rank adds its
// number to a token and passes it on, until the token has gone around three times.
#include <cstdlib>
#include <iostream>
#include <nexar/nexar.hpp>
#include <thread>
#include <vector>

namespace {

constexpr int kRounds = 3;

/// Returns the token as this rank last saw it.
long pass_on(const nexar::Communicator& world) {
    const int right = (world.rank() + 1) % world.size();
    const int left = (world.rank() + world.size() - 1) % world.size();
    long token = 0;
    for (int round = 0; round < kRounds; ++round) {
        if (world.rank() != 0 || round != 0) token = world.recv<long>(left).wait();
        token += world.rank();
        world.send(token, right).wait();
    }
    if (world.rank() == 0) token = world.recv<long>(left).wait();
    return token;
}

}  // namespace

int main(int argc, char** argv) {
    const int size = argc > 1 ? std::atoi(argv[1]) : 4;
    try {
        std::vector<nexar::Node> nodes = nexar::local_cluster(size);
        std::vector<long> tokens(nodes.size());
        {
            std::vector<std::jthread> ranks;
            ranks.reserve(nodes.size());
            for (std::size_t i = 0; i < nodes.size(); ++i) {
                ranks.emplace_back([&, i] { tokens[i] = pass_on(nodes[i].world()); });
            }
        }
        std::cout << "after " << kRounds << " rounds through " << size << " ranks the token is "
                  << tokens[0] << "\n";
        return 0;
    } catch (const nexar::Error& error) {
        std::cerr << error.what() << "\n";
        return 1;
    }
}
