// Reductions over all ranks: a sum that runs while the program computes, a maximum with the rank
// that has it, and a sum in place. Start it with `nexar run -n 4 -- ./allreduce`.
#include <cstdio>
#include <nexar/nexar.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

constexpr std::size_t kCount = 1'000'003;  // prime, so that chunks differ in size

float element(int rank, std::size_t i) {
    return static_cast<float>(i % 97) * static_cast<float>(rank + 1);
}

/// The elements are small whole numbers, so their sum is the same in every order.
void check(std::span<const float> sums, int ranks) {
    const float factor = static_cast<float>(ranks) * static_cast<float>(ranks + 1) / 2;
    for (std::size_t i = 0; i < sums.size(); ++i) {
        if (sums[i] != factor * element(0, i)) throw std::runtime_error("wrong sum");
    }
}

}  // namespace

int main(int argc, char** argv) try {
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    std::vector<float> mine(kCount), sums(kCount);
    for (std::size_t i = 0; i < kCount; ++i) mine[i] = element(world.rank(), i);

    nexar::Work<> summing = world.all_reduce(mine, sums, nexar::sum);
    const double own = std::accumulate(mine.begin(), mine.end(), 0.0);  // while the sum runs
    summing.wait();
    check(sums, world.size());

    // The largest sum of one rank, and the rank that has it.
    const nexar::Located<double> located{.value = own, .index = world.rank()};
    const auto largest = world.all_reduce(located, nexar::max_location).wait();
    if (largest.index != world.size() - 1) throw std::runtime_error("wrong rank of the maximum");

    world.all_reduce(mine, nexar::sum).wait();  // in place
    check(mine, world.size());
    if (world.rank() == 0) {
        std::printf("%d ranks have the same %zu sums; rank %d has the largest elements\n",
                    world.size(), sums.size(), static_cast<int>(largest.index));
    }
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
