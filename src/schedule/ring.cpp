#include "schedule/ring.hpp"

#include <algorithm>

#include "schedule/layout.hpp"

namespace nexar::schedule {

std::uint32_t Ring::before() const noexcept {
    return around(first, around(position, world() - 1, world()), world());
}

std::uint32_t Ring::after() const noexcept {
    return around(first, around(position, 1, world()), world());
}

Slice Ring::chunk_of(std::uint32_t at, const Slice& whole) const {
    return chunk(whole, chunks, owners.rank_at(at));
}

Ring ring_of(const Request& request) {
    return {.chunks = request.chunks,
            .position = request.order.position_of(request.rank),
            .owners = request.order};
}

void ring_all_gather(Builder& builder, const Ring& ring, const Slice& own, const Slice& whole,
                     const Holds& holds) {
    const std::uint32_t world = ring.world();
    const std::uint32_t next = around(ring.position, 1, world);
    const auto has = [&](std::uint32_t position, std::uint32_t i) {
        return holds && holds(position, i);
    };
    for (std::uint32_t step = 0; step + 1 < world; ++step) {
        const std::uint32_t out = around(ring.position, world - step, world);
        const std::uint32_t in = around(out, world - 1, world);
        if (!has(next, out))
            builder.send(ring.after(), step == 0 ? own : ring.chunk_of(out, whole));
        if (!has(ring.position, in)) builder.receive(ring.before(), ring.chunk_of(in, whole));
    }
}

RingPlaces::RingPlaces(Builder& builder, const Ring& ring, const Slice& result)
    : whole_(result),
      slot_count_(std::min(kSlots, std::max(ring.world(), 3U) - 2)),
      slot_size_(ring.chunks.largest()) {
    if (ring.world() > 2) slots_ = builder.scratch(slot_count_ * slot_size_);
}

Slice RingPlaces::place(const Ring& ring, std::uint32_t i, std::uint32_t step) const {
    if (slot_count_ == 0) return ring.chunk_of(i, whole_);
    if (i == ring.position) return whole_;
    return part(slots_, step % slot_count_ * slot_size_, ring.chunks.count(ring.owners.rank_at(i)));
}

void ring_reduce_scatter(Builder& builder, const Ring& ring, const Slice& in,
                         const RingPlaces& places) {
    const std::uint32_t world = ring.world();
    for (std::uint32_t step = 0; step + 1 < world; ++step) {
        const std::uint32_t out = around(ring.position, world - 1 - step, world);
        const std::uint32_t incoming = around(out, world - 1, world);
        builder.send(ring.after(),
                     step == 0 ? ring.chunk_of(out, in) : places.place(ring, out, step - 1));
        builder.receive_reduce(ring.before(), places.place(ring, incoming, step),
                               ring.chunk_of(incoming, in), compute::Side::left);
    }
}

}  // namespace nexar::schedule
