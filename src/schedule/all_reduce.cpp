// All-reduce: every rank gets the fold of all ranks' vectors. This file has the algorithms that
// divide the vector (ring, segmented ring, halving and doubling, reduce-scatter with all-gather)
// and the tree; recursive doubling is in all_reduce_doubling.cpp.
//
// Terms: `in` and `out` are the rank's whole input and output, the same memory in place; a block is
// the part of the vector that one group of ranks has folded at the end of halving (halving.hpp). n
// = world, S = elements of the vector.

#include "schedule/all_reduce.hpp"

#include "schedule/builder.hpp"
#include "schedule/halving.hpp"
#include "schedule/layout.hpp"
#include "schedule/ring.hpp"
#include "schedule/tree_parts.hpp"

namespace nexar::schedule::all_reduce {

namespace {

Schedule ring_in_segments(const Request& request, std::uint64_t segment) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Ring ring = ring_of(request);
    Builder builder(segment);
    builder.among(request.order.ranks());
    if (request.world == 1) builder.copy(in, out);
    ring_reduce_scatter(builder, ring, in, RingPlaces(out));
    ring_all_gather(builder, ring, chunk(out, request.chunks, request.rank), out);
    return std::move(builder).build();
}

}  // namespace

// Ring: a reduce-scatter around the ring, then an all-gather around the same ring (ring.hpp).
//
//     world 4, chunk sent in step 0, 1, 2     0 -3-> 1 -0-> 2 -1-> 3 -2-> 0     folding
//                                             0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
//                                             0 -1-> 1 -2-> 2 -3-> 3 -0-> 0
//                            step 3, 4, 5     0 -0-> 1 -1-> 2 -2-> 3 -3-> 0     copying
//                                             0 -3-> 1 -0-> 2 -1-> 3 -2-> 0
//                                             0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
//
// Each rank sends 2S(n-1)/n, the minimum, in 2(n-1) steps. Chosen for large vectors, where the many
// steps matter little. The order of operands differs from chunk to chunk, so the operator must
// commute.
Schedule ring(const Request& request) {
    return ring_in_segments(request, 0);
}

// Segmented ring: the messages of the ring, but a rank folds and forwards segment k of a chunk
// while segment k+1 is still arriving, so a step delays the data by one segment instead of one
// chunk. Bytes and steps are those of the ring. Chosen for large vectors.
Schedule segmented_ring(const Request& request) {
    return ring_in_segments(request, request.segment);
}

// Halving and doubling (Rabenseifner), along the canonical tree: a reduce-scatter by halving
// (halving.hpp), then an all-gather with the same partners in the opposite order, in which both
// partners send everything they have.
//
//     groups 4    0: 0123 -> 01.. -> 0... -> 01.. -> 0123     with 1, 2, then 2, 1
//                 1: 0123 -> ..23 -> ..2. -> ..23 -> 0123     with 0, 3, then 3, 0
//
// If n is a power of two, each rank sends 2S(n-1)/n in 2 log2(n) steps. Otherwise n - bit_floor(n)
// ranks first give their vector to a neighbour and get the result from it last: two more steps, and
// 2S more for these pairs. Chosen for medium and large vectors.
Schedule halving_doubling(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Halving halving(request.world, request.rank);
    const FoldTree& tree = halving.tree();
    const Chunks blocks = Chunks::even(in.count, tree.groups());
    Builder builder;
    if (request.world == 1) builder.copy(in, out);
    halving.fold(builder, blocks, in, {out, 0});
    if (!halving.is_leader()) {
        builder.receive(request.rank - 1, out);
        return std::move(builder).build();
    }
    for (std::uint32_t round = tree.rounds(); round-- > 0;) {
        const Span all = halving.held(round);
        const Span own = halving.held(round + 1);
        const Span other =
            own.begin == all.begin ? Span{own.end, all.end} : Span{all.begin, own.begin};
        builder.send(halving.partner(round), chunk_range(out, blocks, own.begin, own.end));
        builder.receive(halving.partner(round), chunk_range(out, blocks, other.begin, other.end));
    }
    if (tree.is_pair(tree.group_of(request.rank))) builder.send(request.rank + 1, out);
    return std::move(builder).build();
}

// Reduce-scatter by halving, then all-gather by ring.
//
//     world 4    0 <-> 1, 2 <-> 3; 0 <-> 2, 1 <-> 3; then chunks to their owners, then the ring
//
// The first phase folds along the canonical tree, which a ring cannot do. In the second phase each
// rank sends to one neighbour only, and all ranks share the work equally, which doubling does not
// achieve when n is not a power of two. A rank keeps the chunks that it folded for others, so the
// ring does not send them back to it. Each rank sends about 2S(n-1)/n in log2(n) + n steps. Chosen
// for large vectors when results must be reproducible.
Schedule reduce_scatter_all_gather(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Slice own = chunk(out, request.chunks, request.rank);
    Builder builder;
    if (request.world == 1) {
        builder.copy(in, out);
    } else {
        const Halving halving(request.world, request.rank);
        HalvingReduceScatter{halving, request.chunks, in, {out, 0}, own}.add_to(builder);
        builder.among(request.order.ranks());
        ring_all_gather(
            builder, ring_of(request), own, out, [&](std::uint32_t at, std::uint32_t other) {
                const Halving there(request.world, request.order.rank_at(at));
                const std::uint32_t owner = request.order.rank_at(other);
                return there.is_leader() && there.block() == there.tree().group_of(owner);
            });
    }
    return std::move(builder).build();
}

// Tree: fold to rank 0 along the canonical tree, then a binomial broadcast.
//
//     world 4    1 -> 0, 3 -> 2, then 2 -> 0; back 0 -> 2, then 0 -> 1, 2 -> 3
//
// Both phases run in segments, so the broadcast starts when rank 0 has folded the first segment. A
// rank sends at most S (log2(n) + 1), most ranks send S, in 2 log2(n) steps. Chosen for small
// vectors, and where a rank should talk to few others.
Schedule tree(const Request& request) {
    const Slice out = output_of(request);
    Builder builder(request.segment);
    FoldToRoot{request.world, request.rank, 0, input_of(request), out}.add_to(builder);
    binomial_broadcast(builder, request.world, request.rank, 0, out);
    return std::move(builder).build();
}

}  // namespace nexar::schedule::all_reduce
