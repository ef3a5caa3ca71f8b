// Terms: position: distance of a rank from the root, around the world; out: the vector, which the
// root has and all get.

#include "schedule/broadcast.hpp"

#include "schedule/builder.hpp"
#include "schedule/layout.hpp"
#include "schedule/ring.hpp"
#include "schedule/tree_parts.hpp"

namespace nexar::schedule::broadcast {

// Flat: the root sends to everybody.
//
//     world 4, root 0    0 -> 1, 0 -> 2, 0 -> 3
//
// The root sends S(n-1) in one step. For worlds of a few ranks and small vectors.
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

// Binomial tree: everybody who has it passes it on, to the largest subtree first.
//
//     world 4, root 0    0 -> 2, then 0 -> 1 and 2 -> 3
//
// The root sends S log2(n), in log2(n) steps. For small vectors; segments make it a pipeline for
// medium ones.
Schedule binomial(const Request& request) {
    Builder builder(request.segment);
    binomial_broadcast(builder, request.world, request.rank, request.root, output_of(request));
    return std::move(builder).build();
}

// Scatter and all-gather (van de Geijn): the root cuts the vector in n chunks and scatters them
// down a binomial tree; then the chunks go around a ring. A rank that saw chunks of others on their
// way down does not get them again.
//
//     world 4, root 0    0 -23-> 2, then 0 -1-> 1 and 2 -3-> 3; then the ring 0 -> 1 -> 2 -> 3
//
// A rank sends up to 2S(n-1)/n in log2(n) + n - 1 steps. For large vectors. Chunk c belongs to the
// rank at position c.
Schedule scatter_all_gather(const Request& request) {
    const Slice out = output_of(request);
    const Chunks& chunks = request.chunks;
    const Binomial tree(request.world, request.root);
    const std::uint32_t position = tree.position(request.rank);
    const auto subtree = [&](std::uint32_t at) {
        return chunk_range(out, chunks, at, at + tree.size(at));
    };
    Builder builder;
    if (position != 0) builder.receive(tree.rank(Binomial::parent(position)), subtree(position));
    for (std::uint32_t d = tree.first_child(position); d > 0; d /= 2)
        builder.send(tree.rank(position + d), subtree(position + d));
    ring_all_gather(builder, {chunks, position, request.root}, chunk(out, chunks, position), out,
                    [&](std::uint32_t at, std::uint32_t i) { return i - at < tree.size(at); });
    return std::move(builder).build();
}

// Chain: every position passes the vector on to the next, segment by segment.
//
//     world 4, root 0    0 -> 1 -> 2 -> 3
//
// Each rank sends S once; n - 1 steps of one segment each pass before the last rank has the first
// segment, then it is as fast as one link. For large vectors.
Schedule chain(const Request& request) {
    const Slice out = output_of(request);
    const std::uint32_t world = request.world;
    const std::uint32_t position = distance(request.root, request.rank, world);
    Builder builder(request.segment);
    if (position != 0) builder.receive(around(request.rank, world - 1, world), out);
    if (position + 1 < world) builder.send(around(request.rank, 1, world), out);
    return std::move(builder).build();
}

// Spanning tree: down the tree that Request::tree gives, in segments; for networks whose links are
// not alike. Each rank sends S once per child; the depth of the tree is the number of steps.
//
//     world 4, 0 with child 3, 3 with children 1 and 2    0 -> 3, then 3 -> 1 and 3 -> 2
Schedule spanning_tree(const Request& request) {
    const Slice out = output_of(request);
    Builder builder(request.segment);
    if (request.tree.parent) builder.receive(*request.tree.parent, out);
    for (const std::uint32_t child : request.tree.children) builder.send(child, out);
    return std::move(builder).build();
}

}  // namespace nexar::schedule::broadcast
