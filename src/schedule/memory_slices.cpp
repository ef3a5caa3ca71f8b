// Slices: reductions of large vectors between ranks that share memory, in two stages. The vector is
// divided into one chunk per rank. In stage 0 every rank puts the chunks of the others into its
// segment; then each rank folds its own chunk, reading n - 1 segments in place. In stage 1 it puts
// the fold into its segment, and the ranks that need it copy it.
//
//     world 4    stage 0    0 puts chunks 1 2 3, 1 puts 0 2 3, ...; rank i folds chunk i
//                stage 1    rank i puts the fold of chunk i; all ranks, or the root, copy it
//
// A rank writes S and reads 2S(n-1)/n, whatever n is, and all ranks fold at the same time. Chosen
// for large vectors, in rounds of one segment per chunk: a rank puts the next piece of its vector
// into its segment before it waits for the others.
//
// Terms: `in` and `out` are the rank's whole input and output; `fold` is the rank's own chunk of
// the result, in scratch where the rank has no output. n = world, S = elements of the vector.

#include "schedule/builder.hpp"
#include "schedule/layout.hpp"
#include "schedule/memory_parts.hpp"
#include "schedule/memory_slots.hpp"
#include "schedule/tree_fold.hpp"

namespace nexar::schedule::slices {

namespace {

void fold_own(Builder& builder, const Request& request, const Slice& fold) {
    const Slice in = input_of(request);
    for (std::uint32_t d = 1; d < request.world; ++d) {
        const std::uint32_t peer = around(request.rank, d, request.world);
        builder.in_memory(0, place_of(peer, request));
        builder.send(peer, chunk(in, request.chunks, peer));
    }
    builder.in_memory(0, place_of(request.rank, request));
    TreeFold(builder, request.world, request.rank, chunk(in, request.chunks, request.rank), fold)
        .add();
    builder.in_memory(1, place_of(request.rank, request));
}

void receive_from_others(Builder& builder, const Request& request, const Slice& out) {
    for (std::uint32_t d = 1; d < request.world; ++d) {
        const std::uint32_t peer = around(request.rank, d, request.world);
        builder.in_memory(1, place_of(peer, request));
        builder.receive(peer, chunk(out, request.chunks, peer));
    }
}

}  // namespace

Schedule all_reduce(const Request& request) {
    const Slice out = output_of(request);
    const Slice fold = chunk(out, request.chunks, request.rank);
    Builder builder(request.segment);
    fold_own(builder, request, fold);
    for (std::uint32_t d = 1; d < request.world; ++d)
        builder.send(around(request.rank, d, request.world), fold);
    receive_from_others(builder, request, out);
    return std::move(builder).build();
}

Schedule reduce(const Request& request) {
    const Slice out = output_of(request);
    Builder builder(request.segment);
    if (request.is_root()) {
        fold_own(builder, request, chunk(out, request.chunks, request.rank));
        receive_from_others(builder, request, out);
    } else {
        const Slice fold = builder.scratch(request.chunks.count(request.rank));
        fold_own(builder, request, fold);
        builder.send(request.root, fold);
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::slices
