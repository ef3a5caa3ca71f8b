// The root broadcasts a vector whose size the other ranks do not know: first the size, then the
// elements. Each rank is the root once. Start it with `nexar run -n 4 -- ./broadcast`.
#include <cstdio>
#include <nexar/nexar.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace {

std::vector<double> parameters_of(int rank) {
    std::vector<double> parameters(100'000 * static_cast<std::size_t>(rank + 1) + 7);
    std::iota(parameters.begin(), parameters.end(), 0.25 * rank);
    return parameters;
}

/// Returns the root's vector; the others may pass an empty one.
std::vector<double> from_root(const nexar::Communicator& world, std::vector<double> have,
                              int root) {
    have.resize(world.broadcast(have.size(), root).wait());
    world.broadcast(have, root).wait();
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
