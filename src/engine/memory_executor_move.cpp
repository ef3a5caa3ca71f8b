// Moves bytes between the buffers of a call and the segments.

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "compute/stream_copy.hpp"
#include "engine/memory_executor.hpp"

namespace nexar::engine {

using Operand = MemoryPlan::Operand;

namespace {

// Two operands and a result fit the first-level cache.
constexpr std::size_t kBlock = std::size_t{16} << 10U;

// Results from here on would displace the buffers, which other ranks are about to read, from the
// caches.
constexpr std::uint64_t kStreamedBytes = std::uint64_t{1} << 20U;

std::size_t block_bytes(std::uint32_t element) {
    return element >= kBlock ? element : kBlock / element * element;
}

}  // namespace

/// The slice of another rank from byte `from` on, at which the round begins: as the rank put it, or
/// where it shows it.
const std::byte* MemoryExecutor::peer_data(const Operand& operand,
                                           std::uint64_t from) const noexcept {
    const MemoryPlan& plan = *call_.plan;
    const std::uint32_t rank = operand.index;
    if (plan.in_slot()) {
        return segments_.at(
                   rank, layout().slot(call_.number) + MemoryLayout::payload(plan.extent_bytes())) +
               operand.place;
    }
    if (const std::byte* const shown = seen_[rank].at(phase_ - 1).data; shown != nullptr) {
        return shown + operand.offset + from;
    }
    return segments_.at(rank, layout().buffer(buffer_of(known_[rank].first, round_))) +
           operand.place;
}

/// Runs one group for the rounds `round` to `last`. `put_at` is where this rank puts its data;
/// nullptr: the others read it where it is. Only if all ranks show their vectors are there several
/// rounds.
void MemoryExecutor::run_group(const MemoryPlan::Group& group, std::uint64_t round,
                               std::uint64_t last, std::byte* put_at) {
    const std::uint64_t from = round * group.segment;
    if (round > 0 && (group.segment == 0 || from >= group.bytes)) return;
    const std::uint64_t until =
        group.segment == 0 ? group.bytes : std::min(group.bytes, (last + 1) * group.segment);
    if (group.ops == 0) return put(group, from, until, put_at);
    const MemoryPlan::Op& first = call_.plan->ops(group).front();
    if (group.ops == 1 && !first.folds && !group.puts) return copy_one(first, from, until);
    fold_blocks(group, from, until, put_at);
}

void MemoryExecutor::put(const MemoryPlan::Group& group, std::uint64_t from, std::uint64_t until,
                         std::byte* put_at) const {
    const std::uint32_t element = call_.plan->element_bytes();
    std::byte* to = put_at + group.place;
    for (std::uint64_t at = from; at < until;) {
        const port::Bytes piece = call_.memory->at(group.result.slice, at, until - at, element);
        std::memcpy(to, piece.data(), piece.size());
        to += piece.size();
        at += piece.size();
    }
}

void MemoryExecutor::copy_one(const MemoryPlan::Op& op, std::uint64_t from,
                              std::uint64_t until) const {
    const std::uint32_t element = call_.plan->element_bytes();
    const bool incoming = op.a.kind == Operand::Kind::peer;
    const std::byte* data = incoming ? peer_data(op.a, from) : nullptr;
    for (std::uint64_t at = from; at < until;) {
        port::Bytes into = call_.memory->at(op.out.slice, at, until - at, element);
        if (incoming) {
            copy_out(into.data(), data, into.size());
            data += into.size();
        } else {
            const port::Bytes own = call_.memory->at(op.a.slice, at, into.size(), element);
            into = into.first(own.size());
            copy_out(into.data(), own.data(), own.size());
        }
        at += into.size();
    }
}

/// Copies into the memory of the call.
void MemoryExecutor::copy_out(std::byte* to, const std::byte* from,
                              std::size_t bytes) const noexcept {
    if (call_.plan->written_bytes() >= kStreamedBytes) {
        compute::stream_copy(to, from, bytes);
    } else {
        std::memcpy(to, from, bytes);
    }
}

void MemoryExecutor::fold_blocks(const MemoryPlan::Group& group, std::uint64_t from,
                                 std::uint64_t until, std::byte* put_at) {
    const MemoryPlan& plan = *call_.plan;
    const std::size_t block = block_bytes(plan.element_bytes());
    if (found_.size() < group.ops) found_.resize(group.ops);
    if (in_register_.size() < plan.registers()) in_register_.resize(plan.registers());
    if (blocks_.size() < plan.registers() * block) blocks_.resize(plan.registers() * block);
    for (std::uint64_t at = from; at < until;) {
        const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(block, until - at));
        at += fold_block(group, at, most, from, put_at);
    }
}

/// Runs all steps of a group on one block, which ends early where memory is not contiguous. Returns
/// its size.
std::size_t MemoryExecutor::fold_block(const MemoryPlan::Group& group, std::uint64_t at,
                                       std::size_t bytes, std::uint64_t from, std::byte* put_at) {
    const MemoryPlan& plan = *call_.plan;
    const std::uint32_t element = plan.element_bytes();
    const auto ops = plan.ops(group);
    const auto find = [&](const Operand& operand) -> std::byte* {
        if (operand.kind != Operand::Kind::memory) return nullptr;
        const port::Bytes found = call_.memory->at(operand.slice, at, bytes, element);
        bytes = std::min(bytes, found.size());
        return found.data();
    };
    for (std::size_t i = 0; i < ops.size(); ++i) {
        found_[i] = {.a = find(ops[i].a), .b = find(ops[i].b), .out = find(ops[i].out)};
    }
    const auto value = [&](const Operand& operand, const std::byte* found) -> const std::byte* {
        if (operand.kind == Operand::Kind::memory) return found;
        if (operand.kind == Operand::Kind::block) return in_register_[operand.index];
        return peer_data(operand, from) + (at - from);
    };
    const std::byte* result = nullptr;
    for (std::size_t i = 0; i < ops.size(); ++i) {
        const MemoryPlan::Op& op = ops[i];
        const std::byte* const a = value(op.a, found_[i].a);
        const bool in_block = op.out.kind == Operand::Kind::block;
        if (!op.folds && in_block) {
            // The register shows the data in place.
            result = in_register_[op.out.index] = a;
            continue;
        }
        std::byte* const out =
            in_block ? blocks_.data() + op.out.index * block_bytes(element) : found_[i].out;
        if (op.folds) {
            NEXAR_ASSERT(call_.reducer != nullptr, "a reduction has an operator");
            call_.reducer->fold(out, a, value(op.b, found_[i].b), bytes / element);
        } else {
            copy_out(out, a, bytes);
        }
        if (in_block) in_register_[op.out.index] = out;
        result = out;
    }
    if (group.puts && put_at != nullptr)
        std::memcpy(put_at + group.place + (at - from), result, bytes);
    return bytes;
}

}  // namespace nexar::engine
