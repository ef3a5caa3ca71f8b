// Terms: in: the root's vector, all chunks; result: where the rank's chunk goes; position: distance
// from the root.

#include "schedule/scatter.hpp"

#include "schedule/builder.hpp"
#include "schedule/layout.hpp"
#include "schedule/subtree.hpp"

namespace nexar::schedule::scatter {

// Flat: the root sends to everybody.
//
//     world 4, root 0    0 -1-> 1, 0 -2-> 2, 0 -3-> 3
//
// The root sends S(n-1)/n in one step. For large chunks, of any sizes, which only the root needs to
// know.
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

// Binomial tree: a rank gets the chunks of its whole subtree and passes on those of its children,
// the largest subtree first.
//
//     world 4, root 0    0 -23-> 2, then 0 -1-> 1 and 2 -3-> 3
//
// The root sends log2(n) messages instead of n - 1, in log2(n) steps; chunks travel up to log2(n)
// times. For small chunks. All ranks must know all sizes.
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
