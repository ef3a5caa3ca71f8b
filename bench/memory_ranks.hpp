#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/pool_profile.hpp"
#include "engine/context.hpp"
#include "engine/engine.hpp"
#include "engine/peer.hpp"

namespace nexar::bench {

/// A segment in memory of this process.
class Segment final : public port::SharedMemory, public port::PeerMemory {
public:
    explicit Segment(std::size_t bytes) : lines_(bytes / sizeof(Line)) {}

    port::Bytes bytes() noexcept override { return std::as_writable_bytes(std::span(lines_)); }
    port::ConstBytes bytes() const noexcept override { return std::as_bytes(std::span(lines_)); }

private:
    struct alignas(64) Line {
        std::array<std::byte, 64> bytes{};
    };
    std::vector<Line> lines_;
};

/// Engines of one process that share memory and have no links.
class MemoryRanks {
public:
    explicit MemoryRanks(std::uint32_t world, std::size_t segment_bytes = std::size_t{8} << 20U) {
        std::vector<NodeId> members(world);
        std::vector<std::shared_ptr<Segment>> segments;
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            members[rank] = NodeId({static_cast<std::byte>(rank + 1)});
            segments.push_back(std::make_shared<Segment>(segment_bytes));
        }
        for (std::uint32_t rank = 0; rank < world; ++rank) {
            Member& one = ranks_.emplace_back();
            one.rank = rank;
            one.context = &one.engine.add_context(ContextId(1), members, Rank(rank));
            std::vector<std::shared_ptr<const port::PeerMemory>> others(segments.begin(),
                                                                        segments.end());
            others[rank].reset();
            NEXAR_ASSERT(one.engine.set_memory(*one.context, segments[rank], std::move(others)));
        }
    }
    ~MemoryRanks() {
        for (Member& one : ranks_) {
            one.engine.close();
            while (one.engine.poll_done() != nullptr) {
            }
        }
    }
    MemoryRanks(const MemoryRanks&) = delete;
    MemoryRanks& operator=(const MemoryRanks&) = delete;

    /// Sets up the operation that start() starts: an all-reduce of f32, a broadcast or a barrier.
    /// With `shared` its data is in shared buffers.
    void prepare(schedule::Collective what, std::size_t count, bool shared = false) {
        for (Member& one : ranks_) {
            one.data.resize(shared ? 0 : count);
            one.operation.terms = {
                .what = what, .dtype = DType::f32, .element_bytes = sizeof(float), .count = count};
            one.operation.reducer.reset();
            if (what == schedule::Collective::all_reduce) {
                one.operation.terms.operator_name = "sum";
                one.operation.reducer = compute::reducer_for(DType::f32, ReduceOp::sum).value();
            }
            one.operation.in_place = true;
            one.operation.chunks =
                schedule::Chunks::even(count, static_cast<std::uint32_t>(ranks_.size()));
            one.operation.output.assign(1, shared ? share(one, count * sizeof(float))
                                                  : std::as_writable_bytes(std::span(one.data)));
            one.operation.timeout = std::chrono::hours(1);
        }
    }
    void start(std::uint32_t rank) {
        ranks_[rank].engine.start(*ranks_[rank].context, ranks_[rank].operation);
    }
    /// True when the operation of this rank has ended.
    bool poll(std::uint32_t rank) {
        Member& one = ranks_[rank];
        if (one.engine.poll_done() == nullptr) {
            one.engine.poll_memory();
            if (one.engine.poll_done() == nullptr) return false;
        }
        NEXAR_ASSERT(!one.operation.error);
        return true;
    }

private:
    struct Member {
        BufferPool pool{PoolProfile::inference()};
        engine::Engine engine{{}, pool};
        std::uint32_t rank = 0;
        engine::Context* context = nullptr;
        engine::CollectiveOperation operation;
        std::vector<float> data;
    };
    /// A shared buffer of a rank, as if its links had carried it to the others.
    port::Bytes share(Member& owner, std::size_t bytes) {
        const auto memory = std::make_shared<Segment>(engine::whole_buffer(bytes));
        const std::uint64_t name = owner.engine.add_buffer(memory);
        for (Member& other : ranks_) {
            if (other.rank == owner.rank) continue;
            owner.context->pairs[other.rank]->peer->buffers.shared(name);
            other.context->pairs[owner.rank]->peer->buffers.add(name, memory);
        }
        return memory->bytes().first(bytes);
    }

    std::deque<Member> ranks_;
};

}  // namespace nexar::bench
