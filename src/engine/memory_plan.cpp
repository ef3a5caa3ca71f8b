#include "engine/memory_plan.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "schedule/memory_parts.hpp"

namespace nexar::engine {

using schedule::Kind;
using schedule::Slice;
using schedule::Space;
using schedule::Step;

namespace {

schedule::MemoryUse use_of(const schedule::Request& request) {
    return {.world = request.world,
            .count = request.chunks.total(),
            .largest = request.chunks.largest(),
            .segment = request.segment};
}

}  // namespace

MemoryPlan::MemoryPlan(const schedule::Schedule& schedule, const schedule::Algorithm& algorithm,
                       const schedule::Request& request, std::uint32_t element_bytes)
    : element_bytes_(element_bytes),
      stages_(algorithm.traits.stages),
      rounds_(schedule::memory_rounds(algorithm.traits, use_of(request))),
      extent_bytes_(schedule::memory_extent(algorithm.traits, use_of(request)) * element_bytes),
      in_slot_(algorithm.traits.stages == 1 && request.segment == 0),
      reach_(request.world) {
    if (algorithm.traits.puts == schedule::Puts::chunks) {
        chunks_ = request.chunks;
        place_size_ = schedule::place_of(1, request);
    }
    const auto phases = schedule::phases_of(schedule);
    for (std::uint32_t phase = 0; phase <= stages_; ++phase) {
        phases_.push_back(groups_.size());
        open_ = false;
        result_ = {};
        for (std::size_t i = 0; i < phases.size(); ++i) {
            if (phases[i] == phase) add(schedule.steps[i]);
        }
        NEXAR_ASSERT(!open_ || groups_.back().puts, "a register holds its value within a group");
    }
    phases_.push_back(groups_.size());
    for (const Group& group : groups_) {
        for (const Op& op : ops(group)) {
            if (op.out.kind == Operand::Kind::memory) written_bytes_ += group.bytes;
        }
    }
    find_partners(schedule);
    if (!in_slot_) find_shown(schedule, phases);
}

/// Where the slice at a place begins in the vector of the rank that puts it.
std::uint64_t MemoryPlan::offset_at(std::uint64_t place) const {
    if (place_size_ == 0) return 0;
    return chunks_.offset(static_cast<std::uint32_t>(place / place_size_));
}

void MemoryPlan::find_partners(const schedule::Schedule& schedule) {
    std::vector<std::uint32_t> readers;
    for (const Step& step : schedule.steps) {
        if (!schedule::is_message(step.kind)) continue;
        partners_.push_back(step.peer);
        if (step.kind == Kind::send) readers.push_back(step.peer);
    }
    for (auto* const ranks : {&partners_, &readers}) {
        std::ranges::sort(*ranks);
        const auto rest = std::ranges::unique(*ranks);
        ranks->erase(rest.begin(), rest.end());
    }
    if (readers.empty()) return;
    readers_ = readers.size() == 1 ? Readers::one : Readers::several;
    reader_ = readers.front();
}

void MemoryPlan::add(const Step& step) {
    if (step.kind == Kind::send) return add_put(step);
    Group& group = open_group(step);
    Op op{.folds = schedule::folds(step.kind)};
    Operand given{};
    if (schedule::receives(step.kind)) {
        given = {.kind = Operand::Kind::peer,
                 .index = step.peer,
                 .place = step.place * element_bytes_,
                 .offset = offset_at(step.place) * element_bytes_};
        std::uint64_t& reach = reach_[step.peer].at(step.stage);
        reach = std::max(reach, given.offset + step.count() * element_bytes_);
        peers_.push_back(step.peer);
        ++group.peers;
    } else {
        given = read(step.from);
    }
    op.a = given;
    if (op.folds) {
        op.b = read(step.local);
        if (step.side == compute::Side::right) std::swap(op.a, op.b);
    }
    op.out = written(step.into);
    ops_.push_back(op);
    ++group.ops;
    group.result = op.out;
    result_ = step.into;
    open_ = op.out.kind == Operand::Kind::block;
}

/// The group that the step continues: the last one, if it left its result in a register.
MemoryPlan::Group& MemoryPlan::open_group(const Step& step) {
    const std::uint64_t bytes = step.count() * element_bytes_;
    if (open_ && !groups_.back().puts) {
        NEXAR_ASSERT(groups_.back().bytes == bytes, "the slices of a group have one length");
        return groups_.back();
    }
    in_registers_.clear();
    groups_.push_back({.first_op = static_cast<std::uint32_t>(ops_.size()),
                       .first_peer = static_cast<std::uint32_t>(peers_.size()),
                       .bytes = bytes,
                       .segment = step.segments() > 1 ? step.segment * element_bytes_ : 0});
    return groups_.back();
}

void MemoryPlan::add_put(const Step& step) {
    const Copied copy{.from = step.from, .place = step.place, .stage = step.stage};
    if (step.count() == 0 || std::ranges::find(copied_, copy) != copied_.end()) return;
    copied_.push_back(copy);
    const bool follows = !groups_.empty() && groups_.size() > phases_.back() &&
                         !groups_.back().puts && groups_.back().ops > 0 && result_ == step.from;
    if (!follows) {
        open_ = false;
        open_group(step);
        groups_.back().result = {.slice = step.from};
        NEXAR_ASSERT(step.from.space != Space::scratch,
                     "scratch is put by the group that fills it");
    }
    groups_.back().puts = true;
    groups_.back().place = step.place * element_bytes_;
    result_ = {};
}

MemoryPlan::Operand MemoryPlan::read(const Slice& slice) {
    if (slice.space != Space::scratch) return {.slice = slice};
    const auto found = std::ranges::find(in_registers_, slice.offset);
    NEXAR_ASSERT(found != in_registers_.end(), "a register is written before it is read");
    return {.kind = Operand::Kind::block,
            .index = static_cast<std::uint32_t>(found - in_registers_.begin())};
}

MemoryPlan::Operand MemoryPlan::written(const Slice& slice) {
    if (slice.space == Space::scratch &&
        std::ranges::find(in_registers_, slice.offset) == in_registers_.end()) {
        in_registers_.push_back(slice.offset);
        registers_ = std::max(registers_, static_cast<std::uint32_t>(in_registers_.size()));
    }
    return read(slice);
}

namespace {

/// True if a rank that shows what `send` sends may run `write`, which is in phase `phase`.
///
/// Writing the same slice before the stage is published is how the data comes about. Writing it
/// later is safe only in a step that receives a later stage from the only reader: a rank publishes
/// a stage of a round after it has finished reading the stages before. That is what makes slices
/// safe in place: chunk p is read by rank p alone, and replaced by what rank p makes of it.
bool leaves_shown(const Step& send, const Step& write, std::uint32_t phase) noexcept {
    if (!schedule::overlap(send.from, write.into)) return true;
    if (send.from != write.into) return false;
    if (phase <= send.stage) return true;
    return schedule::receives(write.kind) && write.peer == send.peer && write.stage > send.stage;
}

}  // namespace

void MemoryPlan::find_shown(const schedule::Schedule& schedule,
                            std::span<const std::uint32_t> phases) {
    for (std::uint32_t stage = 0; stage < stages_; ++stage) {
        std::optional<Slice> all;
        bool possible = true;
        for (const Step& send : schedule.steps) {
            if (send.kind != Kind::send || send.stage != stage || send.count() == 0) continue;
            const std::uint64_t offset = offset_at(send.place);
            possible = possible && send.from.space != Space::scratch && send.from.offset >= offset;
            if (!possible) break;
            const Slice vector{.space = send.from.space,
                               .offset = send.from.offset - offset,
                               .count = offset + send.count()};
            if (!all) all = vector;
            possible = all->space == vector.space && all->offset == vector.offset;
            all->count = std::max(all->count, vector.count);
            for (std::size_t i = 0; possible && i < schedule.steps.size(); ++i) {
                const Step& write = schedule.steps[i];
                possible = write.kind == Kind::send || leaves_shown(send, write, phases[i]);
            }
        }
        if (possible) shown_.at(stage) = all;
    }
}

}  // namespace nexar::engine
