// Operators of one's own. Maps x -> a x + b do not commute: they are composed in the order of
// ranks. The greatest common divisor commutes, and says so, which leaves nexar more ways to compute
// it. Start it with `nexar run -n 4 -- ./custom_operator`.
#include <cstdint>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <numeric>
#include <span>
#include <stdexcept>
#include <vector>

namespace {

using Map = std::uint64_t;  // a above b, both modulo 2^32

Map map_of(std::uint64_t a, std::uint64_t b) {
    return a << 32U | (b & 0xffff'ffffU);
}

/// First the map of the lower rank, then that of the higher one.
struct Compose {
    Map operator()(Map low, Map high) const {
        const std::uint64_t a = high >> 32U;
        const std::uint64_t b = high & 0xffff'ffffU;
        return map_of(a * (low >> 32U), a * (low & 0xffff'ffffU) + b);
    }
};

Map map_at(int rank, std::size_t i) {
    return map_of(2 * i + 3, static_cast<std::uint64_t>(rank) + 7 * i);
}

}  // namespace

int main(int argc, char** argv) try {
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    std::vector<Map> maps(1000);
    for (std::size_t i = 0; i < maps.size(); ++i) maps[i] = map_at(world.rank(), i);
    world.all_reduce(std::span(maps), Compose()).wait();
    for (std::size_t i = 0; i < maps.size(); ++i) {
        Map expected = map_at(0, i);
        for (int rank = 1; rank < world.size(); ++rank) {
            expected = Compose()(expected, map_at(rank, i));
        }
        if (maps[i] != expected) throw std::runtime_error("composed in another order");
    }

    const auto divisor =
        nexar::custom([](auto a, auto b) { return std::gcd(a, b); }, nexar::Commutes::yes);
    std::uint64_t common = 360'360 * (static_cast<std::uint64_t>(world.rank()) + 1);
    world.all_reduce(std::span(&common, 1), divisor).wait();
    if (common != 360'360) throw std::runtime_error("wrong divisor");
    if (world.rank() == 0) std::printf("maps are in order, the common divisor is right\n");
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
