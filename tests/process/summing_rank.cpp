// Sums numbers whose sum depends on the order of additions, and prints a hash of the result's bits.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <nexar/nexar.hpp>
#include <span>
#include <vector>

namespace {

/// Numbers of very different magnitudes, the same in each run.
float value(int rank, std::size_t i) {
    std::uint64_t bits = static_cast<std::uint64_t>(rank) * 0x9e3779b97f4a7c15 + i;
    bits = (bits ^ (bits >> 30U)) * 0xbf58476d1ce4e5b9;
    bits ^= bits >> 27U;
    return (static_cast<float>(bits % 2000) - 1000.0F) / static_cast<float>(1 + bits % 977);
}

/// FNV-1a over the bits of `values`.
std::uint64_t fold(std::uint64_t hash, std::span<const float> values) {
    for (const float one : values) {
        std::uint32_t bits = 0;
        std::memcpy(&bits, &one, sizeof bits);
        hash = (hash ^ bits) * 0x100000001b3;
    }
    return hash;
}

}  // namespace

int main() {
    try {
        const nexar::Node node = nexar::join();
        const nexar::Communicator world = node.world();
        std::uint64_t hash = 0xcbf29ce484222325;
        for (const std::size_t count : {std::size_t{1}, std::size_t{1001}, std::size_t{70'001}}) {
            std::vector<float> values(count);
            for (std::size_t i = 0; i < count; ++i) values[i] = value(world.rank(), i);
            world.all_reduce(std::span(values), nexar::sum).wait();
            hash = fold(hash, values);
        }
        std::printf("bits %016llx\n", static_cast<unsigned long long>(hash));
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}
