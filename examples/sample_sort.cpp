// Sample sort: sorts keys that are spread over all ranks. Samples of each rank's sorted keys divide
// the keys into one range per rank; then each rank receives the keys of its range and sorts them.
// Every rank checks the result, and rank 0 compares it with std::sort. Start it with
// `nexar run -n 4 -- ./sample_sort`.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nexar/nexar.hpp>
#include <numeric>
#include <random>
#include <stdexcept>
#include <vector>

namespace {

using Key = std::uint64_t;
constexpr std::size_t kKeysPerSample = 100;

/// Ranks have different numbers of keys, some have none. Many keys occur several times.
std::vector<Key> keys_of(int rank) {
    std::mt19937_64 random(static_cast<std::uint64_t>(rank));
    std::vector<Key> keys(static_cast<std::size_t>((rank + 2) % 4) * 10'007);
    for (Key& key : keys) key = random() % 20'011;
    return keys;
}

/// The last key of each rank's range, except the last rank's.
std::vector<Key> splitters_of(const nexar::Communicator& world, const std::vector<Key>& keys) {
    std::vector<Key> own;  // the more keys, the more samples
    for (std::size_t i = 0; i < keys.size(); i += kKeysPerSample) own.push_back(keys[i]);
    std::vector<Key> samples = world.all_gather_v(own).wait().elements;
    std::ranges::sort(samples);
    const auto ranks = static_cast<std::size_t>(world.size());
    std::vector<Key> splitters;
    for (std::size_t i = 1; i < ranks; ++i)
        splitters.push_back(samples[i * samples.size() / ranks]);
    return splitters;
}

std::vector<Key> sorted(const nexar::Communicator& world, std::vector<Key> keys) {
    std::ranges::sort(keys);
    std::vector<std::size_t> counts;
    auto begin = keys.begin();
    for (const Key last : splitters_of(world, keys)) {
        const auto end = std::upper_bound(begin, keys.end(), last);
        counts.push_back(static_cast<std::size_t>(end - begin));
        begin = end;
    }
    counts.push_back(static_cast<std::size_t>(keys.end() - begin));
    std::vector<Key> mine = world.all_to_all_v(keys, counts).wait().elements;
    std::ranges::sort(mine);
    return mine;
}

/// Throws unless the ranks hold as many keys as before, with the same sum, in ascending order.
void check(const nexar::Communicator& world, const std::vector<Key>& before,
           const std::vector<Key>& after) {
    const auto sum = [](const auto& keys) { return std::reduce(keys.begin(), keys.end()); };
    // Unsigned differences that add up to 0 over all ranks.
    const auto more = world.all_reduce(after.size() - before.size(), nexar::sum).wait();
    const Key larger = world.all_reduce(sum(after) - sum(before), nexar::sum).wait();
    if (more != 0 || larger != 0) throw std::runtime_error("keys were lost or changed");
    const Key lower = world.exclusive_scan(after.empty() ? 0 : after.back(), nexar::max).wait();
    if (!std::ranges::is_sorted(after) || (!after.empty() && after.front() < lower)) {
        throw std::runtime_error("wrong order");
    }
}

}  // namespace

int main(int argc, char** argv) try {
    const nexar::Node node = nexar::join(argc, argv);
    const nexar::Communicator world = node.world();
    const std::vector<Key> before = keys_of(world.rank());
    const std::vector<Key> after = sorted(world, before);
    check(world, before, after);

    std::vector<Key> expected = world.gather_v(before, 0).wait().elements;
    const nexar::Gathered<Key> all = world.gather_v(after, 0).wait();
    if (world.rank() != 0) return 0;
    std::ranges::sort(expected);
    if (all.elements != expected) throw std::runtime_error("the result differs from std::sort");
    std::printf("%d ranks sorted %zu keys; no rank has more than %zu\n", world.size(),
                expected.size(), std::ranges::max(all.counts));
} catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
