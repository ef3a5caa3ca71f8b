// All-gather: every rank contributes its chunk and gets the chunks of all ranks.
//
// Algorithms: ring (large chunks), recursive doubling (small and medium chunks), Bruck (small
// chunks, worlds that are not a power of two). All take chunks of different sizes.
//
// Terms: `in` is the rank's chunk, `out` all chunks; in place, `in` is the rank's chunk of `out`.
// n = world, S = elements of the result. 01.. means: chunks 0 and 1 are there, 2 and 3 are not.

#include "schedule/all_gather.hpp"

#include "schedule/builder.hpp"
#include "schedule/fold_tree.hpp"
#include "schedule/layout.hpp"
#include "schedule/ring.hpp"

namespace nexar::schedule::all_gather {

// Ring: each rank passes the chunk that it got last on to the next rank.
//
//     world 4, chunk sent in step 0, 1, 2     0 -0-> 1 -1-> 2 -2-> 3 -3-> 0
//                                             0 -3-> 1 -0-> 2 -1-> 3 -2-> 0
//                                             0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
//
// Each rank sends S(n-1)/n, always to the same neighbour, in n - 1 steps. Chosen for large chunks.
// With segments a rank passes the start of a chunk on while the rest is still arriving.
Schedule ring(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    Builder builder(request.segment);
    builder.among(request.order.ranks());
    builder.copy(in, chunk(out, request.chunks, request.rank));
    ring_all_gather(builder, ring_of(request), in, out);
    return std::move(builder).build();
}

// Recursive doubling: in round k each group of ranks exchanges everything it has with the group at
// distance 2^k.
//
//     world 4    0: 0... -> 01.. -> 0123     exchanges with 1, then with 2
//                1: .1.. -> 01.. -> 0123     exchanges with 0, then with 3
//
// In a world that is not a power of two, the first ranks form pairs (fold_tree.hpp): the second
// rank of a pair gives its chunk to the first one before the rounds and gets all other chunks after
// them. Each rank sends S(n-1)/n in log2(n) steps; with pairs it takes two more steps, in which the
// first rank of a pair sends another S. Chosen for small and medium chunks.
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

// Bruck: before round k a rank has 2^k chunks, its own and those that follow. It sends them to the
// rank 2^k before it, and so every rank doubles what it has.
//
//     world 4    0: 0... -> 01.. -> 0123     receives from 1, then from 2
//                3: ...3 -> 0..3 -> 0123     receives from 0, then from 1
//
// Each chunk is received in its final place, so nothing has to be rotated at the end; chunks that
// wrap around the end of the world travel as two messages. Each rank sends S(n-1)/n in
// ceil(log2(n)) steps for every n. Chosen for small chunks where n is not a power of two.
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
