// Gather: the root gets the chunks of all ranks.
//
// Algorithms: flat (large chunks), binomial tree (small chunks).
//
// Terms: `in` is the rank's chunk; `out` is the root's result, all chunks; `position` is the
// distance of a rank from the root, modulo the world. n = world, S = elements of the result.

#include "schedule/gather.hpp"

#include "schedule/builder.hpp"
#include "schedule/layout.hpp"
#include "schedule/subtree.hpp"

namespace nexar::schedule::gather {

// Flat: every rank sends its chunk to the root.
//
//     world 4, root 0    1 -> 0, 2 -> 0, 3 -> 0
//
// The root receives S(n-1)/n in one step. Chosen for large chunks; takes chunks of different sizes,
// which only the root needs to know.
Schedule flat(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    Builder builder;
    if (!request.is_root()) {
        builder.send(request.root, in);
    } else {
        builder.copy(in, chunk(out, request.chunks, request.rank));
        for (std::uint32_t d = 1; d < request.world; ++d) {
            const std::uint32_t peer = around(request.root, d, request.world);
            builder.receive(peer, chunk(out, request.chunks, peer));
        }
    }
    return std::move(builder).build();
}

// Binomial tree: a rank collects the chunks of its subtree and sends them together to its parent.
//
//     world 4, root 0    1 -> 0 and 3 -> 2, then 2 -23-> 0
//
// The root receives log2(n) messages instead of n - 1, in log2(n) steps, and a chunk makes up to
// log2(n) hops. Chosen for small chunks. All ranks must know the sizes of all chunks.
Schedule binomial(const Request& request) {
    const Slice in = input_of(request);
    const Binomial tree(request.world, request.root);
    const std::uint32_t position = tree.position(request.rank);
    Builder builder;
    if (position != 0 && tree.size(position) == 1) {
        builder.send(tree.rank(Binomial::parent(position)), in);
        return std::move(builder).build();
    }
    const Subtree chunks(builder, request, output_of(request));
    builder.copy(in, chunks.own());
    for (std::uint32_t d = 1; d < tree.size(position); d *= 2)
        for (const Slice& slice : chunks.slices(position + d, tree.size(position + d)))
            builder.receive(tree.rank(position + d), slice);
    if (position != 0)
        for (const Slice& slice : chunks.slices(position, tree.size(position)))
            builder.send(tree.rank(Binomial::parent(position)), slice);
    return std::move(builder).build();
}

}  // namespace nexar::schedule::gather
