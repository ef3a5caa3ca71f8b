// Broadcast: every rank gets the root's vector.
//
// Algorithms: flat (few ranks, small vectors), binomial tree (small and medium vectors), scatter
// and all-gather (large vectors), chain (large vectors); spanning.cpp has the spanning tree.
//
// Terms: `position` is the distance of a rank from the root, modulo the world; scatter_all_gather
// and chain count it in the order of the request. `out` is the vector, full at the root from the
// start. n = world, S = elements of the vector.

#include "schedule/broadcast.hpp"

#include "schedule/builder.hpp"
#include "schedule/layout.hpp"
#include "schedule/ring.hpp"
#include "schedule/tree_parts.hpp"

namespace nexar::schedule::broadcast {

// Flat: the root sends the vector to every other rank.
//
//     world 4, root 0    0 -> 1, 0 -> 2, 0 -> 3
//
// The root sends S(n-1) in one step. Chosen for small vectors in worlds of a few ranks.
Schedule flat(const Request& request) {
    const Slice out = output_of(request);
    Builder builder;
    if (!request.is_root()) {
        builder.receive(request.root, out);
    } else {
        for (std::uint32_t d = 1; d < request.world; ++d)
            builder.send(around(request.root, d, request.world), out);
    }
    return std::move(builder).build();
}

// Binomial tree: each rank that has the vector sends it to its children, largest subtree first.
//
//     world 4, root 0    0 -> 2, then 0 -> 1 and 2 -> 3
//
// The root sends S log2(n) in log2(n) steps. Chosen for small vectors, and with segments, which
// make it a pipeline, for medium ones.
Schedule binomial(const Request& request) {
    Builder builder(request.segment);
    binomial_broadcast(builder, request.world, request.rank, request.root, output_of(request));
    return std::move(builder).build();
}

// Scatter and all-gather (van de Geijn): the root divides the vector into n chunks and scatters
// them down a binomial tree; then the chunks go around a ring. Chunk c belongs to the rank at
// position c. A rank that forwarded chunks of others in the first phase does not receive them
// again.
//
//     world 4, root 0    0 -23-> 2, then 0 -1-> 1 and 2 -3-> 3; then the ring 0 -> 1 -> 2 -> 3
//
// A rank sends at most 2S(n-1)/n in log2(n) + n - 1 steps. Chosen for large vectors.
Schedule scatter_all_gather(const Request& request) {
    const Slice out = output_of(request);
    const Chunks& chunks = request.chunks;
    const RankOrder& order = request.order;
    const Binomial tree(request.world, order.position_of(request.root));
    const std::uint32_t position = tree.position(order.position_of(request.rank));
    const auto subtree = [&](std::uint32_t at) {
        return chunk_range(out, chunks, at, at + tree.size(at));
    };
    Builder builder;
    builder.among(order.ranks());
    if (position != 0) builder.receive(tree.rank(Binomial::parent(position)), subtree(position));
    for (std::uint32_t d = tree.first_child(position); d > 0; d /= 2)
        builder.send(tree.rank(position + d), subtree(position + d));
    ring_all_gather(builder, {chunks, position, tree.rank(0)}, chunk(out, chunks, position), out,
                    [&](std::uint32_t at, std::uint32_t i) { return i - at < tree.size(at); });
    return std::move(builder).build();
}

// Chain: each position forwards the vector to the next one, segment by segment.
//
//     world 4, root 0    0 -> 1 -> 2 -> 3
//
// Each rank except the last sends S once. The first segment takes n - 1 steps to reach the last
// rank; from then on the chain is as fast as one link. Chosen for large vectors.
Schedule chain(const Request& request) {
    const Slice out = output_of(request);
    const std::uint32_t world = request.world;
    const std::uint32_t own = request.order.position_of(request.rank);
    const std::uint32_t position = distance(request.order.position_of(request.root), own, world);
    Builder builder(request.segment);
    builder.among(request.order.ranks());
    if (position != 0) builder.receive(around(own, world - 1, world), out);
    if (position + 1 < world) builder.send(around(own, 1, world), out);
    return std::move(builder).build();
}

}  // namespace nexar::schedule::broadcast
