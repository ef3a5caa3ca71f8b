// Terms: in: the rank's chunk; out: all chunks. In place `in` is its place in `out`.

#include "schedule/all_gather.hpp"

#include "schedule/builder.hpp"
#include "schedule/fold_tree.hpp"
#include "schedule/layout.hpp"
#include "schedule/ring.hpp"

namespace nexar::schedule::all_gather {

// Ring: see ring.hpp. Each rank sends S(n-1)/n in n - 1 steps, to one neighbour. For large chunks,
// of any sizes; segments let a chunk travel on before its end has come.
Schedule ring(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    Builder builder(request.segment);
    builder.copy(in, chunk(out, request.chunks, request.rank));
    ring_all_gather(builder, {request.chunks, request.rank}, in, out);
    return std::move(builder).build();
}

// Recursive doubling: in round k every group exchanges all that it has with the group at distance
// 2^k.
//
//     world 4    0: 0... -> 01.. -> 0123     with 1, then 2
//                1: .1.. -> 01.. -> 0123     with 0, then 3
//
// Where the world is no power of two, the second rank of each of the first pairs gives its chunk to
// the first one before, and gets all others after. Each rank sends S(n-1)/n in log2(n) steps;
// leaders of pairs S more in two steps more. For small and medium chunks of any sizes.
Schedule recursive_doubling(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Chunks& chunks = request.chunks;
    const std::uint32_t rank = request.rank;
    const FoldTree tree(request.world);
    const std::uint32_t group = tree.group_of(rank);
    Builder builder;
    builder.copy(in, chunk(out, chunks, rank));
    if (!tree.is_leader(rank)) {
        builder.send(rank - 1, in);
        builder.receive(rank - 1, chunk_range(out, chunks, 0, rank));
        builder.receive(rank - 1, chunk_range(out, chunks, rank + 1, request.world));
        return std::move(builder).build();
    }
    const bool pair = tree.is_pair(group);
    if (pair) builder.receive(rank + 1, chunk(out, chunks, rank + 1));
    const auto groups_from = [&](std::uint32_t first, std::uint32_t count) {
        return chunk_range(out, chunks, tree.leader(first), tree.leader(first + count));
    };
    for (std::uint32_t d = 1; d < tree.groups(); d *= 2) {
        const std::uint32_t first = group & ~(d - 1);
        const std::uint32_t partner = tree.leader(group ^ d);
        builder.send(partner, d == 1 && !pair ? in : groups_from(first, d));
        builder.receive(partner, groups_from(first ^ d, d));
    }
    if (pair) {
        builder.send(rank + 1, chunk_range(out, chunks, 0, rank + 1));
        builder.send(rank + 1, chunk_range(out, chunks, rank + 2, request.world));
    }
    return std::move(builder).build();
}

// Bruck: before round k a rank has the 2^k chunks from its own on; it sends them 2^k ranks back and
// so doubles what it has. Chunks are put where they belong at once, so there is nothing to rotate
// in the end; a message whose chunks reach around the end of the world goes in two.
//
//     world 4    0: 0... -> 01.. -> 0123     gets from 1, then from 2
//                3: ...3 -> 0..3 -> 0123     gets from 0, then from 1
//
// Each rank sends S(n-1)/n in log2(n) steps, rounded up, for every world: better than recursive
// doubling where that is no power of two. For small chunks, of any sizes.
Schedule bruck(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const std::uint32_t world = request.world;
    const std::uint32_t rank = request.rank;
    Builder builder;
    builder.copy(in, chunk(out, request.chunks, rank));
    for (std::uint32_t have = 1; have < world; have *= 2) {
        const std::uint32_t count = std::min(have, world - have);
        const std::uint32_t to = around(rank, world - have, world);
        const std::uint32_t from = around(rank, have, world);
        for (const Span& span : spans_around(rank, count, world))
            builder.send(to, have == 1 && !span.empty()
                                 ? in
                                 : chunk_range(out, request.chunks, span.begin, span.end));
        for (const Span& span : spans_around(from, count, world))
            builder.receive(from, chunk_range(out, request.chunks, span.begin, span.end));
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::all_gather
