// all_reduce in chunks: ring, halving and doubling, their mixture; and the tree.
//
// Terms: chunk, segment as everywhere; block: the part of the vector that a group of ranks folds in
// the end (halving.hpp); in, out: the rank's whole input and output, the same memory in place.

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
    const Ring ring{request.chunks, request.rank};
    Builder builder(segment);
    if (request.world == 1) builder.copy(in, out);
    ring_reduce_scatter(builder, ring, in, RingPlaces(out));
    ring_all_gather(builder, ring, chunk(out, request.chunks, request.rank), out);
    return std::move(builder).build();
}

}  // namespace

// Ring: the two passes of ring.hpp, folding once around and passing the results on once around.
// Each rank sends 2S(n-1)/n in 2(n-1) steps: no algorithm sends less, but the steps add up, so for
// large vectors. Another order of operands per chunk: for commutative operators only.
Schedule ring(const Request& request) {
    return ring_in_segments(request, 0);
}

// Segmented ring: the same ring, and a chunk does not wait for its end to travel on: segment k
// is folded and sent while segment k+1 arrives. Latency per step shrinks from a chunk to a segment.
Schedule segmented_ring(const Request& request) {
    return ring_in_segments(request, request.segment);
}

// Halving and doubling (Rabenseifner), along the canonical tree: see halving.hpp for the way down;
// the way up exchanges with the same partners in the opposite order, each giving all that it has:
//
//     groups 4    0: 0... -> 01.. -> 0123        with partner 2, then 1
//                 1: ..2. -> ..23 -> 0123        with partner 3, then 0
//
// Each rank sends 2S(n-1)/n in 2 log2(n) steps if n is a power of two. Else n - bit_floor(n) ranks
// give their vector to a neighbour first and get the result last: 2S and two steps more for these
// pairs. For medium and large vectors.
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

// Reduce-scatter by halving, then all-gather by ring. The first phase gives the canonical tree,
// which a ring cannot; the second sends to one neighbour only, and all ranks take an equal part in
// it, which doubling does not where n is no power of two. What a rank folded for others stays with
// it and need not come back. Each rank sends about 2S(n-1)/n in log2(n) + n steps. For large
// vectors where bits must repeat.
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
        ring_all_gather(builder, {request.chunks, request.rank}, own, out,
                        [&](std::uint32_t rank, std::uint32_t i) {
                            const Halving there(request.world, rank);
                            return there.is_leader() && there.block() == there.tree().group_of(i);
                        });
    }
    return std::move(builder).build();
}

// Tree: fold to rank 0 along the canonical tree, then a binomial broadcast; both in segments, so
// that the way down starts when the first segment has come up.
//
//     world 4    1 -> 0, 3 -> 2, then 2 -> 0; back 0 -> 2, then 0 -> 1, 2 -> 3
//
// A rank sends up to S (log2(n) + 1) in 2 log2(n) steps; most send S. For small vectors, and for
// links on which a rank should talk to few others.
Schedule tree(const Request& request) {
    const Slice out = output_of(request);
    Builder builder(request.segment);
    FoldToRoot{request.world, request.rank, 0, input_of(request), out}.add_to(builder);
    binomial_broadcast(builder, request.world, request.rank, 0, out);
    return std::move(builder).build();
}

}  // namespace nexar::schedule::all_reduce
