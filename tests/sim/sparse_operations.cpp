// Every operation in sparse clusters: most pairs of ranks communicate through relays.

#include "sparse_operations.hpp"

#include <bit>
#include <nexar/log.hpp>
#include <numeric>

#include "base/random.hpp"

namespace nexar::testing {
namespace {

constexpr Duration kFormTime = std::chrono::seconds(5);

std::size_t most_neighbours(const SparseShape& shape) {
    const auto topology = routing::Topology::parse(shape.topology).value();
    return topology.degree() != 0 ? topology.degree() : std::bit_width(shape.nodes - 1);
}

/// Datagrams travel between neighbours only, and no node has more of them than the topology allows.
void expect_few_connections(const SparseCluster& cluster, const SparseShape& shape) {
    std::vector<std::size_t> connections(cluster.size());
    for (const auto& [a, b] : cluster.connections()) {
        const auto at_a = static_cast<routing::Position>(a);
        const auto at_b = static_cast<routing::Position>(b);
        EXPECT_TRUE(cluster.graph().adjacent(at_a, at_b)) << a << " and " << b;
        ++connections[a];
        ++connections[b];
    }
    for (std::size_t rank = 0; rank < cluster.size(); ++rank) {
        EXPECT_GE(connections[rank], 1U) << "rank " << rank;
        EXPECT_LE(connections[rank], most_neighbours(shape)) << "rank " << rank;
    }
}

/// Whether the operation has a variant for chunks of different sizes.
bool takes_counts(schedule::Collective what) {
    using enum schedule::Collective;
    return what == all_gather || what == gather || what == scatter || what == reduce_scatter ||
           what == all_to_all;
}

/// All collectives with chunks of equal and of different sizes, with and without a second buffer.
void run_collectives(SparseTraffic& operations, const std::vector<std::size_t>& ranks,
                     const std::vector<engine::Context*>& contexts, std::size_t most,
                     std::uint64_t seed) {
    Random random(seed);
    for (const schedule::Collective what : schedule::kCollectives) {
        for (const std::size_t count : {std::size_t{0}, std::size_t{1}, ranks.size() + 1, most}) {
            for (const bool uneven : {false, true}) {
                operations.start(ranks, contexts,
                                 {.what = what,
                                  .count = count,
                                  .in_place = random.chance(0.5),
                                  .uneven = uneven && takes_counts(what),
                                  .floats = random.chance(0.5) && schedule::reduces(what),
                                  .root = static_cast<std::uint32_t>(random.below(ranks.size())),
                                  .seed = random.next()});
            }
        }
    }
}

void run_messages(SparseTraffic& operations, std::size_t nodes) {
    for (std::size_t from = 0; from < nodes; ++from) {
        for (std::size_t to = 0; to < nodes; ++to) {
            operations.pass(from, to, 1, 3);
            operations.pass(from, to, std::uint64_t{1} << 40U, 300);
            // Too large to be sent before the receive matches.
            if ((from + to) % 3 == 0) operations.pass(from, to, 7, 9000 + from * 3 + to);
        }
    }
}

}  // namespace

void expect_every_operation_works(const SparseShape& shape) {
    set_log_level(LogLevel::off);
    SparseCluster cluster(shape);
    const auto formed = cluster.form(kFormTime);
    ASSERT_TRUE(formed.has_value());
    SparseTraffic operations(cluster);

    std::vector<std::size_t> all(cluster.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    std::vector<engine::Context*> contexts;
    for (const std::size_t rank : all) contexts.push_back(&cluster.context(rank));
    run_collectives(operations, all, contexts, 900, shape.seed);
    ASSERT_NO_FATAL_FAILURE(operations.finish());
    run_messages(operations, cluster.size());
    ASSERT_NO_FATAL_FAILURE(operations.finish());

    std::vector<std::size_t> odd;
    for (const std::size_t rank : all) {
        if (rank % 2 == 1) odd.insert(odd.begin(), rank);
    }
    run_collectives(operations, odd, cluster.make_communicator(71, odd), 300, shape.seed + 1);
    run_collectives(operations, all, cluster.make_communicator(72, all), 50, shape.seed + 2);
    ASSERT_NO_FATAL_FAILURE(operations.finish());
    expect_few_connections(cluster, shape);
}

}  // namespace nexar::testing
