#include "schedule/check/values.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/try.hpp"

namespace nexar::schedule {

Values::Values(const Run& run, const EventGraph& graph)
    : run_(run),
      graph_(graph),
      canonical_(expressions_.canonical(run.world())),
      buffers_(run.world()),
      in_flight_(run.world()) {
    for (std::uint32_t rank = 0; rank < run.world(); ++rank) {
        in_flight_[rank].resize(run.schedules[rank].steps.size());
        const Slice input = input_of(run.requests[rank]);
        write(rank, input, {{input.count, expressions_.leaf(rank), 0}});
    }
}

Result<void> Values::execute() {
    for (const auto event : graph_.order()) {
        const std::uint32_t rank = graph_.rank_of(event);
        const std::uint32_t step = graph_.step_of(event);
        const Step& s = run_.step(rank, step);
        if (graph_.is_start(event) && s.kind == Kind::send) {
            // Read at the start: in this order of events another step may legally overwrite the
            // slice before the receive ends.
            NEXAR_TRY_VALUE(taken, read(rank, s.from));
            in_flight_[rank][step] = std::move(taken);
        } else if (graph_.is_finished(event) && s.kind != Kind::send) {
            NEXAR_TRY(act(rank, step));
        }
    }
    return {};
}

Result<void> Values::act(std::uint32_t rank, std::uint32_t step) {
    const Step& s = run_.step(rank, step);
    Stretches incoming;
    if (receives(s.kind)) {
        incoming = std::move(in_flight_[s.peer][graph_.other_end(rank, step)]);
    } else {
        NEXAR_TRY_VALUE(from, read(rank, s.from));
        incoming = std::move(from);
    }
    if (folds(s.kind)) {
        NEXAR_TRY_VALUE(result, folded(rank, step, incoming));
        incoming = std::move(result);
    }
    write(rank, s.into, incoming);
    return {};
}

Result<Values::Stretches> Values::read(std::uint32_t rank, const Slice& slice) const {
    Stretches stretches;
    if (slice.count == 0) return stretches;
    std::uint64_t position = slice.offset;
    const auto& buffer = buffers_[rank].at(static_cast<std::size_t>(slice.space));
    for (const auto& entry : buffer.touching(slice.offset, slice.end())) {
        if (entry.begin > position) break;
        const std::uint64_t end = std::min(entry.end, slice.end());
        stretches.push_back({end - position, entry.value.expression, position + entry.value.shift});
        position = end;
    }
    if (position == slice.end()) return stretches;
    return run_.fault(rank, fmt::format("element {} of {} is needed, but no step writes it",
                                        position - slice.offset, to_text(slice)));
}

void Values::write(std::uint32_t rank, const Slice& slice, const Stretches& stretches) {
    auto& buffer = buffers_[rank].at(static_cast<std::size_t>(slice.space));
    std::uint64_t position = slice.offset;
    for (const Stretch& stretch : stretches) {
        buffer.assign(position, position + stretch.count,
                      {stretch.expression, stretch.index - position});
        position += stretch.count;
    }
}

Result<Values::Stretches> Values::folded(std::uint32_t rank, std::uint32_t step,
                                         const Stretches& incoming) {
    const Step& s = run_.step(rank, step);
    NEXAR_TRY_VALUE(local, read(rank, s.local));
    Stretches result;
    std::size_t i = 0;
    std::size_t k = 0;
    std::uint64_t used_i = 0;
    std::uint64_t used_k = 0;
    while (i < incoming.size() && k < local.size()) {
        const Stretch& a = incoming[i];
        const Stretch& b = local[k];
        if (a.index + used_i != b.index + used_k)
            return run_.fault(
                rank, fmt::format("{} folds element {} with element {}", run_.describe(rank, step),
                                  a.index + used_i, b.index + used_k));
        const std::uint64_t count = std::min(a.count - used_i, b.count - used_k);
        const auto expression = s.side == compute::Side::left
                                    ? expressions_.fold(a.expression, b.expression)
                                    : expressions_.fold(b.expression, a.expression);
        result.push_back({count, expression, a.index + used_i});
        used_i += count;
        used_k += count;
        if (used_i == a.count) ++i, used_i = 0;
        if (used_k == b.count) ++k, used_k = 0;
    }
    return result;
}

}  // namespace nexar::schedule
