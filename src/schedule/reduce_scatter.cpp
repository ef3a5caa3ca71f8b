// Reduce-scatter: each rank gets its chunk of the fold of all ranks' vectors.
//
// Algorithms: ring (large vectors), halving (all others). Both take chunks of different sizes.
//
// Terms: `in` is the rank's whole vector; result_of() is where its chunk of the fold goes.
// n = world, S = elements of one rank's vector.

#include "schedule/reduce_scatter.hpp"

#include "schedule/builder.hpp"
#include "schedule/halving.hpp"
#include "schedule/ring.hpp"

namespace nexar::schedule::reduce_scatter {

// Ring: each rank folds its part into the chunk that it got last and passes it on (ring.hpp).
//
//     world 4, chunk sent in step 0, 1, 2     0 -3-> 1 -0-> 2 -1-> 3 -2-> 0
//                                             0 -2-> 1 -3-> 2 -0-> 3 -1-> 0
//                                             0 -1-> 1 -2-> 2 -3-> 3 -0-> 0
//
// Each rank sends S(n-1)/n, always to the same neighbour, in n - 1 steps, and needs a few chunks of
// scratch, or none in place. Chosen for large vectors. The operator must commute.
Schedule ring(const Request& request) {
    const Slice in = input_of(request);
    const Ring ring = ring_of(request);
    Builder builder(request.segment);
    builder.among(request.order.ranks());
    if (request.world == 1) builder.copy(in, result_of(request));
    const RingPlaces places = in_place_here(request)
                                  ? RingPlaces(output_of(request))
                                  : RingPlaces(builder, ring, result_of(request));
    ring_reduce_scatter(builder, ring, in, places);
    return std::move(builder).build();
}

// Halving along the canonical tree (halving.hpp). Afterwards group g holds the block whose number
// is g with its bits reversed, and sends the chunks in it to their owners.
//
//     world 4    0 <-> 1, 2 <-> 3; 0 <-> 2, 1 <-> 3; then chunk 2 from 1 to 2, chunk 1 from 2 to 1
//
// Each rank sends about S in log2(n) + 1 steps and needs S/2 of scratch, or none in place. In a
// world that is not a power of two, some ranks first send their whole vector to a neighbour, which
// needs S of scratch. Chosen for all but the largest vectors.
Schedule halving(const Request& request) {
    const Slice in = input_of(request);
    const Halving halving(request.world, request.rank);
    Builder builder;
    if (request.world == 1) {
        builder.copy(in, result_of(request));
        return std::move(builder).build();
    }
    Window window{in, 0};
    if (!in_place_here(request) && halving.is_leader())
        window = halving.scratch(builder, blocks_of(halving.tree(), request.chunks));
    HalvingReduceScatter{halving, request.chunks, in, window, result_of(request)}.add_to(builder);
    return std::move(builder).build();
}

}  // namespace nexar::schedule::reduce_scatter
