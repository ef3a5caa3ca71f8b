#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "compute/reduce.hpp"
#include "engine/memory_buffers.hpp"
#include "engine/memory_plan.hpp"
#include "engine/memory_segments.hpp"
#include "engine/run_memory.hpp"

namespace nexar::engine {

/// Where a rank shows its vector instead of copying it into its segment.
struct ShownVector {
    std::uint64_t name = 0;    // of a shared buffer; 0: it is copied
    std::uint64_t offset = 0;  // in the buffer
};

using ShownVectors = std::array<ShownVector, MemoryLayout::kStages>;  // by stage

/// An operation for MemoryExecutor. Everything that it refers to must outlive the operation.
struct MemoryCall {
    const MemoryPlan* plan = nullptr;
    std::uint64_t number = 0;  // greater than that of the call before
    std::uint64_t fingerprint = 0;
    const RunMemory* memory = nullptr;
    const compute::Reducer* reducer = nullptr;
    /// Only for a plan in rounds, and only what MemoryPlan::shown() allows. nullptr: nothing.
    const ShownVectors* shown = nullptr;
};

/// Runs the collectives of one communicator in the segments of its ranks, one after the other.
///
/// A rank copies what it sends into its segment, publishes it by a release store, and reads what
/// the others published after an acquire load. An operation whose data fits a slot needs one
/// publication per rank. Others run in rounds: a rank puts the next piece of its vector into one of
/// four buffers before it waits for the others' pieces of this round.
///
/// A rank overwrites a slot or buffer only after all its readers have shown that they finished with
/// it: by publishing something later, or by giving up. That needs no extra message where ranks wait
/// for each other anyway.
///
/// A rank whose vector is in a shared buffer publishes where it is instead of copying it, and the
/// others read it in place. Its operation ends when they have. If it gives up before, it publishes
/// that first, and releases its memory then: the word with its progress is the generation of what
/// it shows. A reader looks at that word after it has read, and before it publishes or returns
/// anything that it made of the data.
///
/// Never blocks. Other ranks may write anything to their segments at any time.
class MemoryExecutor {
public:
    enum class State : std::uint8_t {
        idle,
        waiting,  // for other ranks
        done,
        differs,  // another rank made a different call, see culprit()
        passed,   // another rank gave this operation up, see culprit()
    };

    /// `buffers` finds the shared buffers of other ranks; it must outlive this object. Without it
    /// operations in which other ranks show vectors wait.
    explicit MemoryExecutor(MemorySegments segments, const BufferFinder* buffers = nullptr);

    const MemoryLayout& layout() const noexcept { return segments_.layout(); }

    /// Begins an operation; the last one must have ended. advance() must follow.
    void begin(const MemoryCall& call) noexcept;

    /// Goes as far as possible. After differs or passed the operation waits until give_up().
    State advance();

    /// Ends the operation early. The other ranks can go on without this rank.
    void give_up() noexcept;

    State state() const noexcept { return state_; }
    std::uint32_t culprit() const noexcept { return culprit_; }
    /// True if this rank has published a part in the current operation.
    bool has_published(std::uint32_t rank) const noexcept {
        return segments_.load(rank, layout().slot(call_.number), std::memory_order_acquire) ==
               call_.number + 1;
    }
    /// True if the operation cannot end before this rank does something.
    bool needs(std::uint32_t rank) const noexcept;
    /// True if the operation cannot go on before this rank does something.
    bool awaits(std::uint32_t rank) const noexcept;
    /// True if something was published since the last call; the other ranks may have to be woken.
    bool take_published() noexcept {
        const bool published = published_;
        published_ = false;
        return published;
    }

private:
    /// What a slot or buffer waits for before this rank may overwrite it.
    struct Use {
        std::uint64_t key = 0;  // that its readers must have reached
        MemoryPlan::Readers readers = MemoryPlan::Readers::none;
        std::uint32_t reader = 0;
    };
    /// What this rank knows of another one.
    struct Known {
        std::uint64_t progress = 0;
        std::uint64_t greeted = 0;  // number + 1 of the last operation whose call was compared
        std::uint64_t first = 0;    // buffer of its first round
    };
    /// A vector that another rank shows in the current operation.
    struct Seen {
        std::shared_ptr<const port::PeerMemory> memory{};
        const std::byte* data = nullptr;  // nullptr: it is copied
    };
    enum class Ready : std::uint8_t { yes, no, never };

    // memory_executor.cpp: the order of things
    void begin_rounds() noexcept;
    bool put_round();
    bool run_phase();
    void publish_slot() noexcept;
    void publish(std::uint64_t tick) noexcept;
    bool is_free(Use& use) noexcept;
    Ready ready(std::uint32_t rank) noexcept;
    std::uint64_t wanted_key() const noexcept;
    Ready greet(std::uint32_t rank) noexcept;
    Ready ready_in_round(std::uint32_t rank) noexcept;
    void stop(State state, std::uint32_t rank) noexcept;
    std::uint64_t refresh(std::uint32_t rank) noexcept;
    std::size_t buffer_of(std::uint64_t first, std::uint64_t round) const noexcept;

    // memory_executor_shown.cpp: vectors that ranks show
    bool shows(std::uint32_t stage) const noexcept {
        return call_.shown != nullptr && call_.shown->at(stage).name != 0;
    }
    Ready see(std::uint32_t rank);
    bool still_shown() noexcept { return !sees_ || all_still_shown(); }
    bool all_still_shown() noexcept;
    void look_away() noexcept;
    bool finish_rounds() noexcept;
    std::uint64_t rounds_together() const noexcept;
    bool shows_all(std::uint32_t rank) const noexcept;
    bool reads_shown(std::uint32_t rank) const noexcept;
    std::uint64_t last_read_key() const noexcept;

    // memory_executor_move.cpp: bytes
    void run_group(const MemoryPlan::Group& group, std::uint64_t round, std::uint64_t last,
                   std::byte* put_at);
    void put(const MemoryPlan::Group& group, std::uint64_t from, std::uint64_t until,
             std::byte* put_at) const;
    void copy_one(const MemoryPlan::Op& op, std::uint64_t from, std::uint64_t until) const;
    void copy_out(std::byte* to, const std::byte* from, std::size_t bytes) const noexcept;
    void fold_blocks(const MemoryPlan::Group& group, std::uint64_t from, std::uint64_t until,
                     std::byte* put_at);
    std::size_t fold_block(const MemoryPlan::Group& group, std::uint64_t at, std::size_t bytes,
                           std::uint64_t from, std::byte* put_at);
    const std::byte* peer_data(const MemoryPlan::Operand& operand,
                               std::uint64_t from) const noexcept;

    MemorySegments segments_;
    const BufferFinder* buffers_found_;
    std::vector<Known> known_;                                   // by rank
    std::vector<std::array<Seen, MemoryLayout::kStages>> seen_;  // by rank
    bool sees_ = false;                                          // any vector
    std::array<Use, 2> slots_{};
    std::array<Use, MemoryLayout::kBuffers> buffers_{};
    std::uint64_t next_buffer_ = 0;

    MemoryCall call_{};
    State state_ = State::idle;
    State stuck_ = State::idle;  // differs or passed, once that is known
    bool published_ = false;
    bool announced_ = false;        // that this rank has entered the operation
    bool copies_ = false;           // this rank uses the buffers of its segment
    const Use* blocked_ = nullptr;  // a slot or buffer that is still in use
    std::uint32_t culprit_ = 0;
    std::uint32_t looks_ = 0;
    std::uint64_t first_ = 0;     // buffer of round 0
    std::uint64_t next_put_ = 0;  // round whose first phase is next
    std::uint64_t round_ = 0;
    std::uint64_t last_ = 0;  // round that runs together with round_
    bool finishing_ = false;  // everything is read; others may still read what this rank shows
    Use shown_use_{};         // what this rank shows
    std::optional<std::uint32_t> unseen_{};  // a rank whose buffer has not arrived yet
    std::uint32_t phase_ = 0;
    std::size_t group_ = 0;  // in the phase
    std::size_t peer_ = 0;   // in the group
    /// Where the slices of a step are for the current block, if they are in memory.
    struct Found {
        const std::byte* a = nullptr;
        const std::byte* b = nullptr;
        std::byte* out = nullptr;
    };
    std::vector<Found> found_;
    std::vector<std::byte> blocks_;              // the registers
    std::vector<const std::byte*> in_register_;  // where the value of a register is
};

}  // namespace nexar::engine
