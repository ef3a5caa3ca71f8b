// The same program as ../sample_sort.cpp, written with MPI for comparison. Start it with
// `mpirun -n 4 ./sample_sort_mpi`.
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

namespace {

using Key = std::uint64_t;
constexpr std::size_t kKeysPerSample = 100;

void fail(const char* what) {
    std::fprintf(stderr, "%s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
}

/// Ranks have different numbers of keys, some have none. Many keys occur several times.
std::vector<Key> keys_of(int rank) {
    std::mt19937_64 random(rank);
    std::vector<Key> keys((rank + 2) % 4 * 10'007);
    for (Key& key : keys) key = random() % 20'011;
    return keys;
}

/// The start of each chunk.
std::vector<int> displacements_of(const std::vector<int>& counts) {
    std::vector<int> displacements(counts.size());
    std::exclusive_scan(counts.begin(), counts.end(), displacements.begin(), 0);
    return displacements;
}

/// The last key of each rank's range, except the last rank's.
std::vector<Key> splitters_of(const std::vector<Key>& keys, int ranks) {
    std::vector<Key> own;  // the more keys, the more samples
    for (std::size_t i = 0; i < keys.size(); i += kKeysPerSample) own.push_back(keys[i]);
    const int count = static_cast<int>(own.size());
    std::vector<int> counts(ranks);
    MPI_Allgather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, MPI_COMM_WORLD);
    const std::vector<int> displacements = displacements_of(counts);
    std::vector<Key> samples(displacements.back() + counts.back());
    MPI_Allgatherv(own.data(), count, MPI_UINT64_T, samples.data(), counts.data(),
                   displacements.data(), MPI_UINT64_T, MPI_COMM_WORLD);
    std::ranges::sort(samples);
    std::vector<Key> splitters;
    for (int i = 1; i < ranks; ++i) splitters.push_back(samples[i * samples.size() / ranks]);
    return splitters;
}

std::vector<Key> sorted(std::vector<Key> keys, int ranks) {
    std::ranges::sort(keys);
    std::vector<int> counts;
    auto begin = keys.begin();
    for (const Key last : splitters_of(keys, ranks)) {
        const auto end = std::upper_bound(begin, keys.end(), last);
        counts.push_back(static_cast<int>(end - begin));
        begin = end;
    }
    counts.push_back(static_cast<int>(keys.end() - begin));
    std::vector<int> incoming(ranks);
    MPI_Alltoall(counts.data(), 1, MPI_INT, incoming.data(), 1, MPI_INT, MPI_COMM_WORLD);
    const std::vector<int> from = displacements_of(counts), to = displacements_of(incoming);
    std::vector<Key> mine(to.back() + incoming.back());
    MPI_Alltoallv(keys.data(), counts.data(), from.data(), MPI_UINT64_T, mine.data(),
                  incoming.data(), to.data(), MPI_UINT64_T, MPI_COMM_WORLD);
    std::ranges::sort(mine);
    return mine;
}

/// Fails unless the ranks hold as many keys as before, with the same sum, in ascending order.
void check(const std::vector<Key>& before, const std::vector<Key>& after, int rank) {
    const auto sum = [](const auto& keys) { return std::reduce(keys.begin(), keys.end()); };
    // Unsigned differences that add up to 0 over all ranks.
    Key more = after.size() - before.size();
    Key larger = sum(after) - sum(before);
    MPI_Allreduce(MPI_IN_PLACE, &more, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(MPI_IN_PLACE, &larger, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
    if (more != 0 || larger != 0) fail("keys were lost or changed");
    const Key largest = after.empty() ? 0 : after.back();
    Key lower = 0;
    MPI_Exscan(&largest, &lower, 1, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
    if (rank == 0) lower = 0;  // undefined on rank 0
    if (!std::ranges::is_sorted(after) || (!after.empty() && after.front() < lower)) {
        fail("wrong order");
    }
}

/// Gathers the keys of all ranks, in rank order, and the number of keys of each at rank 0.
std::vector<Key> gather(const std::vector<Key>& keys, std::vector<int>& counts) {
    const int count = static_cast<int>(keys.size());
    MPI_Gather(&count, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, MPI_COMM_WORLD);
    const std::vector<int> displacements = displacements_of(counts);
    std::vector<Key> all(displacements.back() + counts.back());
    MPI_Gatherv(keys.data(), count, MPI_UINT64_T, all.data(), counts.data(), displacements.data(),
                MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return all;
}

}  // namespace

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    const std::vector<Key> before = keys_of(rank);
    const std::vector<Key> after = sorted(before, size);
    check(before, after, rank);

    std::vector<int> counts(size);
    std::vector<Key> expected = gather(before, counts);
    const std::vector<Key> all = gather(after, counts);
    if (rank == 0) {
        std::ranges::sort(expected);
        if (all != expected) fail("the result differs from std::sort");
        std::printf("%d ranks sorted %zu keys; no rank has more than %d\n", size, expected.size(),
                    std::ranges::max(counts));
    }
    MPI_Finalize();
}
