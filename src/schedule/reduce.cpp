// Terms: in: the rank's vector; out: the root's result, which is `in` itself in place.

#include "schedule/reduce.hpp"

#include "schedule/builder.hpp"
#include "schedule/halving.hpp"
#include "schedule/tree_parts.hpp"

namespace nexar::schedule::reduce {

// Binomial tree towards the root, which is the canonical tree for every root: see FoldToRoot for
// the picture. Each rank but the root sends S once, log2(n) steps. For small vectors; segments make
// it a pipeline for medium ones.
Schedule binomial(const Request& request) {
    Builder builder(request.segment);
    FoldToRoot fold{request.world, request.rank, request.root, input_of(request), {}};
    if (request.is_root()) fold.into = output_of(request);
    fold.add_to(builder);
    return std::move(builder).build();
}

// Reduce-scatter and gather: halving along the canonical tree (halving.hpp), then every group sends
// the block that it folded straight to the root.
//
//     world 4, root 0    0 <-> 1, 2 <-> 3; 0 <-> 2, 1 <-> 3; then 1, 2, 3 -> 0
//
// Each rank sends about S in log2(n) + 1 steps, against S log2(n) on the longest way of a
// tree. For large vectors.
Schedule reduce_scatter_gather(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Halving halving(request.world, request.rank);
    const FoldTree& tree = halving.tree();
    const Chunks blocks = Chunks::even(in.count, tree.groups());
    Builder builder;
    if (request.world == 1) {
        builder.copy(in, out);
        return std::move(builder).build();
    }
    Window window{out, 0};
    if (!request.is_root() && halving.is_leader()) window = halving.scratch(builder, blocks);
    halving.fold(builder, blocks, in, window);
    if (!request.is_root()) {
        const std::uint32_t block = halving.block();
        if (halving.is_leader()) builder.send(request.root, window.at(blocks, {block, block + 1}));
        return std::move(builder).build();
    }
    for (std::uint32_t block = 0; block < tree.groups(); ++block) {
        const std::uint32_t holder = tree.leader(halving.holder(block));
        if (holder != request.rank) builder.receive(holder, chunk(out, blocks, block));
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::reduce
