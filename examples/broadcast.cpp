// One rank has something, the others do not even know how much: it first says how much, then gives
// it to all. Every rank has its turn. Start it with `nexar run -n 4 -- ./broadcast`.
#include <cstdint>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

std::vector<double> parameters_of(int rank) {
    std::vector<double> parameters(100'000 * static_cast<std::size_t>(rank + 1) + 7);
    std::iota(parameters.begin(), parameters.end(), 0.25 * rank);
    return parameters;
}

/// What the root has; the others need to have nothing.
std::vector<double> from_root(const nexar::Communicator& world, std::vector<double> have,
                              int root) {
    std::uint64_t count = have.size();
    world.broadcast(std::span(&count, 1), root).wait();
    have.resize(count);
    world.broadcast(std::span(have), root).wait();
    return have;
}

}  // namespace

int main(int argc, char** argv) try {
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    for (int root = 0; root < world.size(); ++root) {
        std::vector<double> mine;
        if (world.rank() == root) mine = parameters_of(root);
        const std::vector<double> got = from_root(world, std::move(mine), root);
        if (got != parameters_of(root)) throw std::runtime_error("wrong data");
        if (world.rank() == 0) {
            std::printf("%d ranks have the %zu parameters of rank %d\n", world.size(), got.size(),
                        root);
        }
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
