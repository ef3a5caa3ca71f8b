// A program as users write it: joins, passes a number around the ring of ranks, and says so.

#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <nexar/nexar.hpp>
#include <span>

int main() {
    try {
        const nexar::Node node = nexar::join();
        nexar::Communicator world = node.world();
        const int size = world.size();
        const std::array<std::int64_t, 1> sent{1000 + world.rank()};
        std::array<std::int64_t, 1> got{};
        // The rank that a test wants to end without leaving.
        const char* const deserter = std::getenv("TEST_DESERTER");
        if (deserter != nullptr && world.rank() == std::atoi(deserter)) ::_exit(0);
        world
            .send_recv(std::span(sent), (world.rank() + 1) % size, std::span(got),
                       (world.rank() + size - 1) % size)
            .wait();
        std::printf("rank %d of %d got %lld\n", world.rank(), size, static_cast<long long>(got[0]));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
