// Joins, sums one number per rank, prints the sum and how long joining took, and leaves.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <nexar/nexar.hpp>
#include <span>

int main() {
    try {
        const auto begun = std::chrono::steady_clock::now();
        const nexar::Node node = nexar::join();
        const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(
            std::chrono::steady_clock::now() - begun);
        nexar::Communicator world = node.world();
        std::int64_t sum = 1000 + 7 * world.rank();
        world.all_reduce(std::span(&sum, 1), nexar::sum).wait();
        std::printf("rank %d of %d formed in %lld ms, sum %lld\n", world.rank(), world.size(),
                    static_cast<long long>(took.count()), static_cast<long long>(sum));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
