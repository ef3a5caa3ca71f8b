// Slots: collectives of ranks that share memory, with one synchronisation. Every rank copies its
// part into its segment, once for all readers; then the receivers read the parts in place, and copy
// or fold them.
//
//     world 4, all_reduce    0, 1, 2, 3: put the vector; then each reads three vectors and folds
//     broadcast, root 0      0: puts the vector; 1, 2, 3 copy it
//     all_to_all             each puts n - 1 chunks, each in a place of its own, and copies n - 1
//
// A rank writes its part once and reads the parts that it needs: n - 1 vectors in an all_reduce, so
// that one is for small vectors (slices are for large ones). All other operations read only what
// they return, and are chosen for all sizes. Vectors that do not fit run in rounds of one segment.
//
// Terms: `in` and `out` are the rank's whole input and output, the same memory in place. n = world.
// Receivers begin with the next rank, so that not all read the same segment at the same time.

#include "schedule/memory_slots.hpp"

#include "schedule/builder.hpp"
#include "schedule/layout.hpp"
#include "schedule/memory_parts.hpp"
#include "schedule/tree_fold.hpp"

namespace nexar::schedule::slots {

namespace {

void send_to_others(Builder& builder, const Request& request, const Slice& slice) {
    for (std::uint32_t d = 1; d < request.world; ++d)
        builder.send(around(request.rank, d, request.world), slice);
}

/// A scan: a rank reads the vectors of the ranks before it, and folds its own if `inclusive`.
Schedule prefix(const Request& request, bool inclusive) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    Builder builder(request.segment);
    for (std::uint32_t peer = request.rank + 1; peer < request.world; ++peer)
        builder.send(peer, in);
    const std::uint32_t ranks = request.rank + (inclusive ? 1 : 0);
    if (ranks > 0) TreeFold(builder, ranks, request.rank, in, out).add();
    return std::move(builder).build();
}

}  // namespace

Schedule all_reduce(const Request& request) {
    const Slice in = input_of(request);
    Builder builder(request.segment);
    send_to_others(builder, request, in);
    TreeFold(builder, request.world, request.rank, in, output_of(request)).add();
    return std::move(builder).build();
}

Schedule reduce(const Request& request) {
    const Slice in = input_of(request);
    Builder builder(request.segment);
    if (!request.is_root()) {
        builder.send(request.root, in);
    } else {
        TreeFold(builder, request.world, request.rank, in, output_of(request)).add();
    }
    return std::move(builder).build();
}

Schedule broadcast(const Request& request) {
    const Slice out = output_of(request);
    Builder builder(request.segment);
    if (request.is_root()) {
        send_to_others(builder, request, out);
    } else {
        builder.receive(request.root, out);
    }
    return std::move(builder).build();
}

Schedule all_gather(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    Builder builder(request.segment);
    send_to_others(builder, request, in);
    builder.copy(in, chunk(out, request.chunks, request.rank));
    for (std::uint32_t d = 1; d < request.world; ++d) {
        const std::uint32_t peer = around(request.rank, d, request.world);
        builder.receive(peer, chunk(out, request.chunks, peer));
    }
    return std::move(builder).build();
}

Schedule gather(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    Builder builder(request.segment);
    if (!request.is_root()) {
        builder.send(request.root, in);
        return std::move(builder).build();
    }
    builder.copy(in, chunk(out, request.chunks, request.rank));
    for (std::uint32_t d = 1; d < request.world; ++d) {
        const std::uint32_t peer = around(request.rank, d, request.world);
        builder.receive(peer, chunk(out, request.chunks, peer));
    }
    return std::move(builder).build();
}

Schedule scatter(const Request& request) {
    const Slice in = input_of(request);
    Builder builder(request.segment);
    if (!request.is_root()) {
        builder.in_memory(0, place_of(request.rank, request));
        builder.receive(request.root, output_of(request));
        return std::move(builder).build();
    }
    for (std::uint32_t d = 1; d < request.world; ++d) {
        const std::uint32_t peer = around(request.rank, d, request.world);
        builder.in_memory(0, place_of(peer, request));
        builder.send(peer, chunk(in, request.chunks, peer));
    }
    builder.copy(chunk(in, request.chunks, request.rank), result_of(request));
    return std::move(builder).build();
}

Schedule reduce_scatter(const Request& request) {
    const Slice in = input_of(request);
    Builder builder(request.segment);
    for (std::uint32_t d = 1; d < request.world; ++d) {
        const std::uint32_t peer = around(request.rank, d, request.world);
        builder.in_memory(0, place_of(peer, request));
        builder.send(peer, chunk(in, request.chunks, peer));
    }
    builder.in_memory(0, place_of(request.rank, request));
    TreeFold(builder, request.world, request.rank, chunk(in, request.chunks, request.rank),
             result_of(request))
        .add();
    return std::move(builder).build();
}

Schedule all_to_all(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    Builder builder(request.segment);
    for (std::uint32_t d = 1; d < request.world; ++d) {
        const std::uint32_t peer = around(request.rank, d, request.world);
        builder.in_memory(0, place_of(peer, request));
        builder.send(peer, chunk(in, request.chunks, peer));
    }
    builder.copy(chunk(in, request.chunks, request.rank),
                 chunk(out, request.receives, request.rank));
    builder.in_memory(0, place_of(request.rank, request));
    for (std::uint32_t d = 1; d < request.world; ++d) {
        const std::uint32_t peer = around(request.rank, d, request.world);
        builder.receive(peer, chunk(out, request.receives, peer));
    }
    return std::move(builder).build();
}

Schedule scan(const Request& request) {
    return prefix(request, true);
}

Schedule exclusive_scan(const Request& request) {
    return prefix(request, false);
}

Schedule barrier(const Request& request) {
    Builder builder;
    for (std::uint32_t d = 1; d < request.world; ++d)
        builder.send_signal(around(request.rank, d, request.world));
    for (std::uint32_t d = 1; d < request.world; ++d)
        builder.receive_signal(around(request.rank, d, request.world));
    return std::move(builder).build();
}

}  // namespace nexar::schedule::slots
