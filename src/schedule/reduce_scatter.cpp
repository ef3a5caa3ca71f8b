// Terms: in: the rank's whole vector; result: where its chunk of the fold goes.

#include "schedule/reduce_scatter.hpp"

#include "schedule/builder.hpp"
#include "schedule/halving.hpp"
#include "schedule/ring.hpp"

namespace nexar::schedule::reduce_scatter {

// Ring: see ring.hpp. Each rank sends S(n-1)/n in n - 1 steps, to one neighbour, with a few chunks
// of scratch, or none in place. For large vectors, chunks of any sizes, commutative operators.
Schedule ring(const Request& request) {
    const Slice in = input_of(request);
    const Ring ring{request.chunks, request.rank};
    Builder builder(request.segment);
    if (request.world == 1) builder.copy(in, result_of(request));
    const RingPlaces places = in_place_here(request)
                                  ? RingPlaces(output_of(request))
                                  : RingPlaces(builder, ring, result_of(request));
    ring_reduce_scatter(builder, ring, in, places);
    return std::move(builder).build();
}

// Halving along the canonical tree: see halving.hpp for the picture. Afterwards the holder of a
// block, whose number is the group's with its bits reversed, hands the chunks to their owners.
// Each rank sends about S in log2(n) + 1 steps; with half of S as scratch, or none in place. Where
// the world is no power of two, some ranks give all of S to a neighbour before, which has S as
// scratch. For vectors of all but the largest sizes, chunks of any sizes.
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
