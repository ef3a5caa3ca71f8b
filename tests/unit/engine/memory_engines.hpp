#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "base/buffer_pool.hpp"
#include "base/pool_profile.hpp"
#include "engine/engine.hpp"
#include "unit/engine/heap_segment.hpp"

namespace nexar::testing {

/// Engines that share memory and have no links. Each may run in a thread of its own.
class MemoryEngines {
public:
    explicit MemoryEngines(std::uint32_t world, std::size_t segment_bytes) {
        std::vector<NodeId> members(world);
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            members[rank] = NodeId({static_cast<std::byte>(rank + 1)});
        }
        const auto segments = heap_segments(world, segment_bytes);
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            Member& one = members_.emplace_back();
            one.context = &one.engine.add_context(ContextId(1), members, Rank(rank));
            NEXAR_ASSERT(
                one.engine.set_memory(*one.context, segments[rank], others_of(segments, rank)));
        }
    }
    ~MemoryEngines() {
        for (Member& one : members_) {
            one.engine.close();
            while (one.engine.poll_done() != nullptr) {
            }
        }
    }
    MemoryEngines(const MemoryEngines&) = delete;
    MemoryEngines& operator=(const MemoryEngines&) = delete;

    /// Starts an in-place operation on 64-bit numbers, folded by their sum if it folds.
    void start(std::uint32_t rank, schedule::Collective what, std::span<std::uint64_t> data) {
        Member& one = members_[rank];
        engine::CollectiveOperation& operation = one.operation;
        operation.terms = {.what = what,
                           .dtype = DType::u64,
                           .element_bytes = sizeof(std::uint64_t),
                           .count = data.size()};
        operation.reducer.reset();
        if (schedule::reduces(what)) {
            operation.terms.operator_name = "sum";
            operation.reducer = compute::reducer_for(DType::u64, ReduceOp::sum).value();
        }
        operation.in_place = true;
        operation.chunks = schedule::Chunks::even(data.size(), size());
        operation.output.assign(1, std::as_writable_bytes(data));
        operation.timeout = std::chrono::hours(1);
        one.engine.start(*one.context, operation);
    }
    /// True when the operation of this rank has ended.
    bool poll(std::uint32_t rank) {
        Member& one = members_[rank];
        if (one.engine.poll_done() == nullptr) {
            one.engine.poll_memory();
            if (one.engine.poll_done() == nullptr) return false;
        }
        return true;
    }
    bool failed(std::uint32_t rank) const { return members_[rank].operation.error.has_value(); }
    std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(members_.size()); }
    const engine::CollectiveTerms& terms(std::uint32_t rank) const {
        return members_[rank].operation.terms;
    }

private:
    struct Member {
        BufferPool pool{PoolProfile::inference()};
        engine::Engine engine{{}, pool};
        engine::Context* context = nullptr;
        engine::CollectiveOperation operation;
    };
    std::deque<Member> members_;
};

}  // namespace nexar::testing
