// Ranks arrive at a barrier one after another, and no rank leaves it before the last has arrived.
// The clocks of different machines do not agree, so rank 0 counts: each rank reports its arrival,
// enters the barrier, and afterwards checks that rank 0 has counted all ranks. Start it with
// `nexar run -n 4 -- ./barrier`.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <stdexcept>
#include <thread>

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kApart(50);

}  // namespace

int main(int argc, char** argv) try {
    std::atomic<int> arrived = 0;  // used at rank 0
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    const nexar::Served arrive = node.serve("arrive", [&] { ++arrived; });
    const nexar::Served count = node.serve("count", [&] { return arrived.load(); });
    world.barrier().wait();  // from here on rank 0 serves both functions

    const int place = world.size() - 1 - world.rank();  // rank 0 arrives last
    std::this_thread::sleep_for(kApart * place);
    node.call<void>(0, "arrive").wait();
    const auto entered = Clock::now();
    world.barrier().wait();
    const auto waited = std::chrono::duration<double, std::milli>(Clock::now() - entered);
    if (node.call<int>(0, "count").wait() != world.size()) {
        throw std::runtime_error("left the barrier before the last rank arrived");
    }
    std::printf("rank %d arrived as number %d and waited %.1f ms\n", world.rank(), place + 1,
                waited.count());
    world.barrier().wait();  // rank 0 stays until all ranks have called it
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
