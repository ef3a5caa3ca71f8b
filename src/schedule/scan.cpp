// Scan: rank r gets the fold of the vectors of ranks 0 to r; in the exclusive scan, of ranks 0 to
// r - 1.
//
// Algorithms, for both: recursive doubling (small vectors), linear (large vectors).
//
// Terms: `in` and `out` are the rank's input and output, the same memory in place; `current` is the
// fold of this rank and the ranks just before it, so far. n = world, S = elements of the vector.

#include "schedule/scan.hpp"

#include <bit>

#include "schedule/builder.hpp"

namespace nexar::schedule::scan {

using compute::Side;

// Recursive doubling: in round k rank r sends the fold of the 2^k ranks up to itself to rank r +
// 2^k, which folds it in front of its own.
//
//     world 4, round 0    0 -> 1 -> 2 -> 3        round 1    0 -> 2, 1 -> 3
//
// Each rank sends at most S log2(n) in log2(n) steps. Chosen for small vectors. A rank folds while
// it is still sending the same slice, so each fold goes to other memory: alternately to `out` and
// to `spare` scratch, such that the last fold goes to `out`.
Schedule recursive_doubling(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const std::uint32_t rank = request.rank;
    auto folds_left = static_cast<std::uint32_t>(std::bit_width(rank));  // one per bit
    const bool turns = folds_left > 0 && rank + 1 < request.world;
    const bool copies = turns && in == out && folds_left % 2 == 1;
    Builder builder;
    const Slice spare = builder.scratch(turns && (folds_left > 1 || copies) ? in.count : 0);
    Slice current = in;
    if (folds_left == 0) builder.copy(in, out);
    if (copies) {
        builder.copy(in, spare);
        current = spare;
    }
    for (std::uint32_t d = 1; d < request.world; d *= 2) {
        if (d < request.world - rank) builder.send(rank + d, current);
        if (rank < d) continue;
        --folds_left;
        const Slice next = !turns || folds_left % 2 == 0 ? out : spare;
        builder.receive_reduce(rank - d, next, current, Side::left);
        current = next;
    }
    return std::move(builder).build();
}

// Linear: each rank folds its vector into the one it receives and forwards it, segment by segment.
//
//     world 4    0 -> 1 -> 2 -> 3
//
// Each rank except the last sends S once. The first segment takes n - 1 steps to reach the last
// rank; from then on the chain is as fast as one link. Chosen for large vectors.
Schedule linear(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const std::uint32_t rank = request.rank;
    Builder builder(request.segment);
    if (rank == 0)
        builder.copy(in, out);
    else
        builder.receive_reduce(rank - 1, out, in, Side::left);
    if (rank + 1 < request.world) builder.send(rank + 1, rank == 0 ? in : out);
    return std::move(builder).build();
}

// Linear, exclusive: what a rank receives is its result. It folds its own vector into a copy of
// that in scratch and forwards the copy. Bytes and steps are those of the inclusive scan.
Schedule exclusive_linear(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const std::uint32_t rank = request.rank;
    const bool sends = rank + 1 < request.world;
    Builder builder(request.segment);
    if (rank == 0) {
        if (sends) builder.send(1, in);
        return std::move(builder).build();
    }
    const Slice folded = builder.scratch(sends ? in.count : 0);
    Slice own = in;
    if (sends && in == out) {
        own = folded;
        builder.copy(in, own);
    }
    builder.receive(rank - 1, out);
    if (sends) {
        builder.reduce(out, folded, own, Side::left);
        builder.send(rank + 1, folded);
    }
    return std::move(builder).build();
}

// Recursive doubling, exclusive: the rounds of the inclusive scan. A rank folds each message twice:
// into the result, which leaves out its own vector, and into `current`, as long as it still has to
// send that to somebody.
Schedule exclusive_recursive_doubling(const Request& request) {
    const Slice in = input_of(request);
    const Slice out = output_of(request);
    const std::uint32_t rank = request.rank;
    const std::uint32_t world = request.world;
    const auto sends = [&](std::uint32_t d) { return d < world - rank; };
    Builder builder;
    Slice current = in;
    if (in == out && rank > 0 && sends(1)) {
        current = builder.scratch(in.count);
        builder.copy(in, current);
    }
    Slice free;  // the previous `current`; the next fold goes there
    for (std::uint32_t d = 1; d < world; d *= 2) {
        if (sends(d)) builder.send(rank + d, current);
        if (rank < d) continue;
        const bool first = d == 1;
        Slice incoming = out;
        if (first) {
            builder.receive(rank - d, out);
        } else if (sends(2 * d)) {
            incoming = builder.scratch(in.count);
            builder.receive(rank - d, incoming);
        } else {
            builder.receive_reduce(rank - d, out, out, Side::left);
        }
        if (sends(2 * d)) {
            const Slice next = free.count > 0 ? free : builder.scratch(in.count);
            builder.reduce(incoming, next, current, Side::left);
            if (current.space == Space::scratch) free = current;
            current = next;
            if (!first) builder.reduce(incoming, out, out, Side::left);
        }
    }
    return std::move(builder).build();
}

}  // namespace nexar::schedule::scan
