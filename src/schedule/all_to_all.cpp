// Terms: in: the rank's chunks by receiver; out: by sender; in place the same memory in the same
// layout.

#include "schedule/all_to_all.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "schedule/builder.hpp"
#include "schedule/layout.hpp"

namespace nexar::schedule::all_to_all {

namespace {

/// Round i: exchange with the rank whose number and the own one add up to i, modulo the world.
/// Both partners find each other, in every world, and chunks of a pair change places: so it works
/// in place, with room for the chunks that are being sent.
Schedule by_pairs(const Request& request, std::uint32_t window) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const bool in_place = in_place_here(request);
    NEXAR_ASSERT(window > 0);
    const std::uint32_t rank = request.rank;
    const std::uint32_t world = request.world;
    Builder builder;
    builder.copy(chunk(in, request.chunks, rank), chunk(out, request.receives, rank));
    const std::uint32_t used = std::min(window, world - 1);
    const std::uint64_t size = in_place ? request.chunks.largest() : 0;
    const Slice slots = builder.scratch(used * size);
    std::vector<Builder::StepId> sent;
    std::vector<Builder::StepId> received;
    const auto pace = [&](std::vector<Builder::StepId>& steps, Builder::StepId step) {
        if (step == Builder::kNone) return;
        if (steps.size() >= window) builder.after(step, std::span(steps).last(window).first(1));
        steps.push_back(step);
    };
    for (std::uint32_t round = 0; round < world; ++round) {
        const std::uint32_t partner = distance(rank, round, world);
        if (partner == rank) continue;
        Slice from = chunk(in, request.chunks, partner);
        if (in_place && from.count > 0) {
            const Slice slot = part(slots, sent.size() % used * size, from.count);
            builder.copy(from, slot);
            from = slot;
        }
        pace(sent, builder.send(partner, from));
        pace(received, builder.receive(partner, chunk(out, request.receives, partner)));
    }
    return std::move(builder).build();
}

}  // namespace

// Pairwise: one partner after the other.
//
//     world 4, round 0    0 -, 1 <-> 3, 2 -        round 2    0 <-> 2, 1 -, 3 -
//              round 1    0 <-> 1, 2 <-> 3         round 3    0 <-> 3, 1 <-> 2
//
// Each rank sends S(n-1)/n in n steps, and has one message each way at a time. For large chunks of
// any sizes.
Schedule pairwise(const Request& request) {
    return by_pairs(request, 1);
}

// Windowed: the same rounds, Request::window of them at a time. For chunks that are too small to
// fill a link one by one, without opening all at once: n messages at every rank would drown the
// receivers.
Schedule windowed(const Request& request) {
    return by_pairs(request, request.window);
}

// Bruck: a chunk for the rank at distance d travels along the bits of d. In round k every rank
// sends all chunks whose distance has bit k, those on their way included, 2^k ranks on.
//
//     world 4    round 0: to the next rank, chunks for distances 1 and 3
//                round 1: two ranks on, chunks for distances 2 and 3
//
// Each rank sends S/2 log2(n) in log2(n) steps, rounded up: few messages, so for small chunks. All
// chunks have the same size. Scratch: S log2(n).
//
// Terms: distances[k]: the distances with bit k, rising; their chunks stand in this order in round
// k's message, which leaves from outgoing[k] and arrives in incoming[k].
Schedule bruck(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const Chunks& chunks = request.chunks;
    const std::uint32_t rank = request.rank;
    const std::uint32_t world = request.world;
    const std::uint64_t size = chunks.count(0);
    std::vector<Slice> place(world);  // of the chunk for each distance
    Builder builder;
    builder.copy(chunk(in, chunks, rank), chunk(out, chunks, rank));
    for (std::uint32_t d = 1; d < world; ++d) place[d] = chunk(in, chunks, around(rank, d, world));
    for (std::uint32_t bit = 1; bit < world; bit *= 2) {
        std::vector<std::uint32_t> distances;
        for (std::uint32_t d = bit; d < world; ++d)
            if ((d & bit) != 0) distances.push_back(d);
        const Slice outgoing = builder.scratch(distances.size() * size);
        const Slice incoming = builder.scratch(distances.size() * size);
        for (std::size_t i = 0; i < distances.size(); ++i)
            builder.copy(place[distances[i]], part(outgoing, i * size, size));
        builder.send(around(rank, bit, world), outgoing);
        builder.receive(around(rank, world - bit, world), incoming);
        for (std::size_t i = 0; i < distances.size(); ++i)
            place[distances[i]] = part(incoming, i * size, size);
    }
    for (std::uint32_t d = 1; d < world; ++d)
        builder.copy(place[d], chunk(out, chunks, around(rank, world - d, world)));
    return std::move(builder).build();
}

}  // namespace nexar::schedule::all_to_all
