// What nexar does, in one minute: the ranks of a job run collectives on data that they check and
// time, and then call two different collectives at once, which nexar explains to both sides instead
// of hanging. Start it with `nexar run -n 4 -- ./demo`.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <nexar/nexar.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Words = std::vector<std::uint32_t>;
constexpr int kRepetitions = 5;
constexpr int kRoot = 0;

/// Differs between ranks and elements, so that a wrong slice shows.
std::uint32_t word(int rank, std::size_t i) {
    return static_cast<std::uint32_t>(i % 1009) * 16 + static_cast<std::uint32_t>(rank);
}

Words words_of(int rank, std::size_t count) {
    Words words(count);
    for (std::size_t i = 0; i < count; ++i) words[i] = word(rank, i);
    return words;
}

/// Seconds for one call of the slowest rank: the mean of several, after one to warm up.
template <class Collective>
double time_of(const nexar::Communicator& world, Collective&& collective) {
    collective().wait();
    world.barrier().wait();
    const auto start = Clock::now();
    for (int i = 0; i < kRepetitions; ++i) collective().wait();
    const std::chrono::duration<double> spent = Clock::now() - start;
    return world.all_reduce(spent.count() / kRepetitions, nexar::max).wait();
}

/// Rank 0 prints a row. Every rank throws if one of them has a wrong element.
template <class Expected>
void report(const nexar::Communicator& world, const char* name, double seconds, const Words& got,
            Expected&& expected) {
    bool right = true;
    for (std::size_t i = 0; i < got.size(); ++i) right = right && got[i] == expected(i);
    if (!world.all_reduce(right, std::logical_and<>{}).wait()) {
        throw std::runtime_error(std::string(name) + " gave wrong data");
    }
    if (world.rank() != 0) return;
    const std::size_t bytes = got.size() * sizeof(got[0]);
    const bool large = bytes >= std::size_t{1} << 20U;
    std::printf("%-10s  %4zu %s  %8.3f ms  %5.2f   on every rank\n", name,
                bytes >> (large ? 20U : 10U), large ? "MiB" : "KiB", seconds * 1e3,
                static_cast<double>(bytes) / seconds / 1e9);
}

void run_collectives(const nexar::Communicator& world, std::size_t count) {
    const int me = world.rank();
    const int ranks = world.size();
    const Words mine = words_of(me, count);
    Words got(count);

    double seconds = time_of(world, [&] { return world.all_reduce(mine, got, nexar::sum); });
    report(world, "all_reduce", seconds, got, [&](std::size_t i) {
        std::uint32_t sum = 0;
        for (int rank = 0; rank < ranks; ++rank) sum += word(rank, i);
        return sum;
    });

    got = me == kRoot ? mine : Words(count);
    seconds = time_of(world, [&] { return world.broadcast(got, kRoot); });
    report(world, "broadcast", seconds, got, [&](std::size_t i) { return word(kRoot, i); });

    const std::size_t chunk = count / static_cast<std::size_t>(ranks);
    const Words out = words_of(me, chunk * static_cast<std::size_t>(ranks));
    got.assign(out.size(), 0);
    seconds = time_of(world, [&] { return world.all_to_all(out, got); });
    report(world, "all_to_all", seconds, got, [&](std::size_t i) {
        return word(static_cast<int>(i / chunk), static_cast<std::size_t>(me) * chunk + i % chunk);
    });
}

/// The last rank calls another collective than the others; every rank prints the error that it
/// gets.
void run_mistake(const nexar::Communicator& world) {
    std::vector<float> gradient(1000, 1.0F);
    std::vector<std::int64_t> weights(500);
    const bool last = world.rank() == world.size() - 1;
    nexar::Work<> work =
        last ? world.broadcast(weights, kRoot) : world.all_reduce(gradient, nexar::sum);
    const nexar::Result<void> result = work.result();
    if (result) throw std::runtime_error("nobody noticed that the calls differ");
    std::printf("rank %d gets: %s\n", world.rank(), result.error().cause().c_str());
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) try {
    const auto start = Clock::now();
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    const std::chrono::duration<double> joined = Clock::now() - start;
    const bool speaks = world.rank() == 0;
    if (world.size() == 1) throw std::runtime_error("start several: nexar run -n 4 -- ./demo");

    if (speaks) {
        std::printf("%d processes joined and connected to each other in %.2f s\n\n", world.size(),
                    joined.count());
        std::printf("operation       size         time   GB/s   checked\n");
    }
    run_collectives(world, std::size_t{16} << 10U);
    run_collectives(world, std::size_t{2} << 20U);

    if (speaks) {
        std::printf("\nNow a mistake: rank %d calls broadcast, the others call all_reduce.\n\n",
                    world.size() - 1);
        std::fflush(stdout);
    }
    world.barrier().wait();
    run_mistake(world);
    world.barrier().wait();  // the communicator works as before
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
