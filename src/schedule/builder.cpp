#include "schedule/builder.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::schedule {

Slice Builder::scratch(std::uint64_t count) {
    const Slice slice{Space::scratch, schedule_.scratch, count};
    schedule_.scratch += count;
    return slice;
}

Builder::StepId Builder::send(std::uint32_t peer, const Slice& from) {
    if (from.count == 0) return kNone;
    return add_message(Kind::send, peer, {.from = from});
}

Builder::StepId Builder::receive(std::uint32_t peer, const Slice& into) {
    if (into.count == 0) return kNone;
    return add_message(Kind::receive_copy, peer, {.into = into});
}

Builder::StepId Builder::receive_reduce(std::uint32_t peer, const Slice& into, const Slice& local,
                                        compute::Side side) {
    if (into.count == 0) return kNone;
    return add_message(Kind::receive_reduce, peer, {.side = side, .into = into, .local = local});
}

Builder::StepId Builder::copy(const Slice& from, const Slice& into) {
    if (from.count == 0 || from == into) return kNone;
    return add({.kind = Kind::copy, .from = from, .into = into});
}

Builder::StepId Builder::reduce(const Slice& from, const Slice& into, const Slice& local,
                                compute::Side side) {
    if (from.count == 0) return kNone;
    return add({.kind = Kind::reduce, .side = side, .from = from, .into = into, .local = local});
}

Builder::StepId Builder::send_signal(std::uint32_t peer) {
    return add_message(Kind::send, peer, {});
}

Builder::StepId Builder::receive_signal(std::uint32_t peer) {
    return add_message(Kind::receive_copy, peer, {.into = {Space::output, 0, 0}});
}

void Builder::after(StepId last, std::span<const StepId> earlier) {
    if (last == kNone) return;
    NEXAR_ASSERT(last + 1 == schedule_.steps.size());
    for (const StepId step : earlier)
        if (step != kNone) need({step, Milestone::finished, false});
    leave_out_implied();
}

Schedule Builder::build() && {
    return std::move(schedule_);
}

Builder::StepId Builder::add_message(Kind kind, std::uint32_t peer, Step step) {
    step.kind = kind;
    step.peer = rank_at(peer);
    step.message = (kind == Kind::send ? sent_ : received_)[step.peer]++;
    return add(step);
}

Builder::StepId Builder::add(Step step) {
    const auto id = static_cast<StepId>(schedule_.steps.size());
    if (step.count() > segment_) step.segment = segment_;
    if (is_message(step.kind)) {
        step.stage = stage_;
        step.place = place_;
    }
    step.first_dependency = static_cast<std::uint32_t>(schedule_.dependencies.size());
    schedule_.steps.push_back(step);
    if (reads_from(step.kind)) read(id, step.from);
    if (folds(step.kind)) read(id, step.local);
    if (writes_into(step.kind)) write(id, step.into);
    leave_out_implied();
    return id;
}

void Builder::read(StepId step, const Slice& slice) {
    if (slice.space == Space::input) return;  // never written
    auto& cells = cells_.at(static_cast<std::size_t>(slice.space));
    for (auto& entry : cells.exactly(slice.offset, slice.end())) {
        if (entry.value.writer.step != kNone) wait_for(entry.value.writer, slice);
        entry.value.readers.push_back({step, slice.offset, slice.count});
    }
}

void Builder::write(StepId step, const Slice& slice) {
    NEXAR_ASSERT(slice.space != Space::input);
    auto& cells = cells_.at(static_cast<std::size_t>(slice.space));
    for (const auto& entry : cells.exactly(slice.offset, slice.end())) {
        const Cell& cell = entry.value;
        // The readers already waited for the writer, and so did the read of this step itself.
        if (cell.readers.empty() && cell.writer.step != kNone) wait_for(cell.writer, slice);
        for (const Access& reader : cell.readers)
            if (reader.step != step) wait_for(reader, slice);
    }
    cells.assign(slice.offset, slice.end(), {{step, slice.offset, slice.count}, {}});
}

void Builder::wait_for(const Access& earlier, const Slice& slice) {
    const Step& step = schedule_.steps[earlier.step];
    const bool same = earlier.offset == slice.offset && earlier.count == slice.count;
    // A send is always the reader here: the later step overwrites what it sends.
    need({earlier.step, step.kind == Kind::send ? Milestone::released : Milestone::finished,
          same && step.segments() > 1});
}

void Builder::need(const Dependency& dependency) {
    Step& last = schedule_.steps.back();
    auto& all = schedule_.dependencies;
    const auto found = std::find_if(all.begin() + last.first_dependency, all.end(),
                                    [&](const Dependency& d) { return d.step == dependency.step; });
    if (found == all.end()) {
        all.push_back(dependency);
        ++last.dependency_count;
        return;
    }
    found->event = std::max(found->event, dependency.event);
    found->pipelined = found->pipelined && dependency.pipelined;
}

void Builder::leave_out_implied() {
    Step& last = schedule_.steps.back();
    auto& all = schedule_.dependencies;
    for (std::size_t i = last.first_dependency; last.dependency_count > 1 && i < all.size();) {
        const Dependency wanted = all[i];
        all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
        if (implied(wanted, last.first_dependency)) {
            --last.dependency_count;
        } else {
            all.insert(all.begin() + static_cast<std::ptrdiff_t>(i), wanted);
            ++i;
        }
    }
}

/// Returns true if the dependencies from index `first` on, those of the last step, lead back to
/// `wanted`. A path of pipelined dependencies alone orders only pieces with equal numbers.
bool Builder::implied(const Dependency& wanted, std::size_t first) const {
    struct Place {
        StepId step;
        bool whole;  // a dependency on the path waits for all pieces
        bool operator==(const Place&) const = default;
    };
    std::vector<Place> places;
    const auto visit = [&](Place place) {
        // Dependencies lead to earlier steps only, so steps before the wanted one cannot lead to
        // it.
        const auto waits = schedule_.dependencies_of(place.step);
        if (std::none_of(waits.begin(), waits.end(),
                         [&](const Dependency& d) { return d.step >= wanted.step; }))
            return;
        if (std::find(places.begin(), places.end(), place) == places.end()) places.push_back(place);
    };
    for (std::size_t i = first; i < schedule_.dependencies.size(); ++i)
        visit({schedule_.dependencies[i].step, !schedule_.dependencies[i].pipelined});
    for (std::size_t i = 0; i < places.size(); ++i) {
        for (const Dependency& d : schedule_.dependencies_of(places[i].step)) {
            const bool whole = places[i].whole || !d.pipelined;
            if (d.step == wanted.step && d.event >= wanted.event && (whole || wanted.pipelined))
                return true;
            visit({d.step, whole});
        }
    }
    return false;
}

}  // namespace nexar::schedule
