// Scatter: each rank gets its chunk of the root's vector.
//
// Algorithms: flat (large chunks), binomial tree (small chunks).
//
// Terms: `in` is the root's vector, all chunks; `position` is the distance of a rank from the root,
// modulo the world. n = world, S = elements of the root's vector. -23-> carries chunks 2 and 3.

#include "schedule/scatter.hpp"

#include "schedule/builder.hpp"
#include "schedule/layout.hpp"
#include "schedule/subtree.hpp"

namespace nexar::schedule::scatter {

// Flat: the root sends each rank its chunk.
//
//     world 4, root 0    0 -1-> 1, 0 -2-> 2, 0 -3-> 3
//
// The root sends S(n-1)/n in one step. Chosen for large chunks; takes chunks of different sizes,
// which only the root needs to know.
Schedule flat(const Request& request) {
    const Slice in = input_of(request);
    Builder builder;
    if (!request.is_root()) {
        builder.receive(request.root, result_of(request));
    } else {
        for (std::uint32_t d = 1; d < request.world; ++d) {
            const std::uint32_t peer = around(request.root, d, request.world);
            builder.send(peer, chunk(in, request.chunks, peer));
        }
        builder.copy(chunk(in, request.chunks, request.rank), result_of(request));
    }
    return std::move(builder).build();
}

// Binomial tree: a rank receives the chunks of its whole subtree and forwards those of its
// children, largest subtree first.
//
//     world 4, root 0    0 -23-> 2, then 0 -1-> 1 and 2 -3-> 3
//
// The root sends log2(n) messages instead of n - 1, in log2(n) steps, and a chunk makes up to
// log2(n) hops. Chosen for small chunks. All ranks must know the sizes of all chunks.
Schedule binomial(const Request& request) {
    const Binomial tree(request.world, request.root);
    const std::uint32_t position = tree.position(request.rank);
    Builder builder;
    if (position != 0 && tree.size(position) == 1) {
        builder.receive(tree.rank(Binomial::parent(position)), result_of(request));
        return std::move(builder).build();
    }
    const Subtree chunks(builder, request, input_of(request));
    if (position != 0)
        for (const Slice& slice : chunks.slices(position, tree.size(position)))
            builder.receive(tree.rank(Binomial::parent(position)), slice);
    for (std::uint32_t d = tree.first_child(position); d > 0; d /= 2)
        for (const Slice& slice : chunks.slices(position + d, tree.size(position + d)))
            builder.send(tree.rank(position + d), slice);
    builder.copy(chunks.own(), result_of(request));
    return std::move(builder).build();
}

}  // namespace nexar::schedule::scatter
