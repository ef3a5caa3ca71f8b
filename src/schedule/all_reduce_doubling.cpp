// All-reduce by recursive doubling: in round k each group of ranks exchanges its whole vector with
// the group at distance 2^k, and both fold the two vectors.
//
//     world 4, round 0    0 <-> 1    2 <-> 3        each rank has the fold of its pair
//              round 1    0 <-> 2    1 <-> 3        each rank has the fold of all four
//
// In a world that is not a power of two, the first ranks form pairs that fold before the rounds,
// and the second rank of each pair gets the result after them (fold_tree.hpp). Each rank sends S
// log2(n) in log2(n) steps, two more with pairs. Chosen for small vectors: no algorithm has fewer
// steps. Every rank folds along the canonical tree.
//
// Terms: `current` is the slice that holds the rank's fold so far. A rank folds while it is still
// sending that slice, so each fold goes to other memory: alternately to `out` and to `spare`
// scratch, such that the last fold goes to `out`.

#include "schedule/all_reduce.hpp"
#include "schedule/builder.hpp"
#include "schedule/fold_tree.hpp"
#include "schedule/tree_parts.hpp"

namespace nexar::schedule {

void doubling_all_reduce(Builder& builder, std::uint32_t world, std::uint32_t rank, const Slice& in,
                         const Slice& out) {
    const FoldTree tree(world);
    const std::uint32_t group = tree.group_of(rank);
    if (!tree.is_leader(rank)) {
        builder.send(rank - 1, in);
        builder.receive(rank - 1, out);
        return;
    }
    const std::uint32_t rounds = tree.rounds();
    const bool spared = rounds == 1 && !tree.is_pair(group) && in != out;
    const Slice spare = builder.scratch(rounds == 0 || spared ? 0 : in.count);
    const auto target = [&](std::uint32_t rounds_left) {
        return rounds_left % 2 == 0 ? out : spare;
    };
    Slice current = in;
    if (tree.is_pair(group)) {
        current = target(rounds);
        builder.receive_reduce(rank + 1, current, in, compute::Side::right);
    } else if (rounds == 0 || in == target(rounds - 1)) {
        current = target(rounds);
        builder.copy(in, current);
    }
    for (std::uint32_t round = 0; round < rounds; ++round) {
        const std::uint32_t partner = tree.leader(group ^ (1U << round));
        const Slice next = target(rounds - 1 - round);
        builder.send(partner, current);
        builder.receive_reduce(partner, next, current,
                               partner < rank ? compute::Side::left : compute::Side::right);
        current = next;
    }
    if (tree.is_pair(group)) builder.send(rank + 1, out);
}

namespace all_reduce {

Schedule recursive_doubling(const Request& request) {
    Builder builder;
    doubling_all_reduce(builder, request.world, request.rank, input_of(request),
                        output_of(request));
    return std::move(builder).build();
}

}  // namespace all_reduce

}  // namespace nexar::schedule
