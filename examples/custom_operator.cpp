// Reductions with operators of your own. The composition of maps x -> a x + b does not commute, so
// nexar composes them in the order of ranks. The greatest common divisor commutes; saying so lets
// nexar choose among more algorithms. Start it with `nexar run -n 4 -- ./custom_operator`.
#include <cstdint>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace {

/// x -> a x + b, modulo 2^32.
struct Map {
    std::uint32_t a = 1;
    std::uint32_t b = 0;

    friend bool operator==(const Map&, const Map&) = default;
};

/// Applies the map of the lower rank first, then that of the higher rank.
Map compose(Map low, Map high) {
    return {high.a * low.a, high.a * low.b + high.b};
}

Map map_at(int rank, std::uint32_t i) {
    return {2 * i + 3, static_cast<std::uint32_t>(rank) + 7 * i};
}

}  // namespace

int main(int argc, char** argv) try {
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    std::vector<Map> maps(1000);
    for (std::uint32_t i = 0; i < maps.size(); ++i) maps[i] = map_at(world.rank(), i);
    world.all_reduce(maps, compose).wait();
    for (std::uint32_t i = 0; i < maps.size(); ++i) {
        Map expected = map_at(0, i);
        for (int rank = 1; rank < world.size(); ++rank) {
            expected = compose(expected, map_at(rank, i));
        }
        if (maps[i] != expected) throw std::runtime_error("composed in the wrong order");
    }

    const auto divisor =
        nexar::custom([](auto a, auto b) { return std::gcd(a, b); }, nexar::Commutes::yes);
    const int common = world.all_reduce(360'360 * (world.rank() + 1), divisor).wait();
    if (common != 360'360) throw std::runtime_error("wrong divisor");
    if (world.rank() == 0)
        std::printf("the maps are composed in order, and the common divisor is correct\n");
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
