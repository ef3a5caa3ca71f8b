// All-to-all: chunk r of every rank's input goes to rank r.
//
// Algorithms: pairwise (large chunks), windowed (medium chunks), Bruck (small chunks of equal
// size).
//
// Terms: `in` holds the rank's chunks by receiver, `out` by sender; in place they are the same
// memory with the same layout. n = world, S = elements of one rank's input.

#include "schedule/all_to_all.hpp"

#include <algorithm>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "schedule/builder.hpp"
#include "schedule/layout.hpp"

namespace nexar::schedule::all_to_all {

namespace {

/// In round i ranks whose numbers add up to i modulo the world exchange their chunks. Both partners
/// compute the same pairs in every world. In place, a chunk is overwritten by the one from its
/// receiver, so chunks in flight are kept in scratch slots.
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

// Pairwise: exchange with one partner after the other.
//
//     world 4, round 0    0 -, 1 <-> 3, 2 -        round 2    0 <-> 2, 1 -, 3 -
//              round 1    0 <-> 1, 2 <-> 3         round 3    0 <-> 3, 1 <-> 2
//
// Each rank sends S(n-1)/n in n steps, with one message in flight in each direction. Chosen for
// large chunks; takes chunks of different sizes.
Schedule pairwise(const Request& request) {
    return by_pairs(request, 1);
}

// Windowed: the rounds of pairwise, with up to Request::window of them in flight. Chosen for chunks
// that are too small to fill a link one at a time. The window keeps n - 1 senders from overwhelming
// a receiver at once. Takes chunks of different sizes.
Schedule windowed(const Request& request) {
    return by_pairs(request, request.window);
}

// Bruck: a chunk for the rank at distance d takes one hop for each bit that is set in d. In round k
// every rank sends, to the rank 2^k after it, all chunks whose distance has bit k, including those
// of other ranks that it is forwarding.
//
//     world 4    round 0: to the next rank, the chunks for distances 1 and 3
//                round 1: to the rank after that, the chunks for distances 2 and 3
//
// Each rank sends S/2 log2(n) in ceil(log2(n)) steps and needs S log2(n) of scratch. Chosen for
// small chunks, because it sends few messages. All chunks must have the same size.
//
// Terms: `distances` are those with the round's bit, ascending; the round's message holds their
// chunks in this order and travels from `outgoing` to `incoming`; place[d] is where this rank keeps
// the chunk for distance d.
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
