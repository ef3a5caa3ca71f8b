#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/memory_layout.hpp"
#include "schedule/algorithm.hpp"
#include "schedule/schedule.hpp"

namespace nexar::engine {

/// A schedule in memory (schedule::Medium) prepared for running: in bytes, divided into phases and
/// groups. Immutable; all runs of the same call share it.
///
/// A group processes one slice block by block: it reads or folds the slices of other ranks, writes
/// the result, and may put it into the segment. Intermediate results are in registers, which hold
/// one block. A rank whose memory its peers can read does not put: it shows them where its vector
/// is, see shown().
class MemoryPlan {
public:
    /// Where a group finds or leaves a slice.
    struct Operand {
        enum class Kind : std::uint8_t { memory, peer, block };
        Kind kind = Kind::memory;
        std::uint32_t index = 0;   // of the peer or the register
        std::uint64_t place = 0;   // at a peer, in its segment: bytes
        std::uint64_t offset = 0;  // at a peer, in the vector that it shows: bytes
        schedule::Slice slice{};   // in memory
    };
    /// out = a, or out = a op b
    struct Op {
        bool folds = false;
        Operand a{};
        Operand b{.kind = Operand::Kind::peer};  // only if it folds
        Operand out{};
    };
    struct Group {
        std::uint32_t first_op = 0;
        std::uint32_t ops = 0;
        std::uint32_t first_peer = 0;  // ranks whose data it reads
        std::uint32_t peers = 0;
        std::uint64_t bytes = 0;
        std::uint64_t segment = 0;  // bytes per round; 0: all in round 0
        bool puts = false;
        std::uint64_t place = 0;  // bytes
        Operand result{};         // what it puts
    };
    /// Who reads what this rank puts.
    enum class Readers : std::uint8_t { none, one, several };

    MemoryPlan(const schedule::Schedule& schedule, const schedule::Algorithm& algorithm,
               const schedule::Request& request, std::uint32_t element_bytes);

    std::uint32_t stages() const noexcept { return stages_; }
    std::uint64_t rounds() const noexcept { return rounds_; }
    /// One round in a slot.
    bool in_slot() const noexcept { return in_slot_; }
    std::uint64_t extent_bytes() const noexcept { return extent_bytes_; }
    /// How much this rank copies into the memory of the call.
    std::uint64_t written_bytes() const noexcept { return written_bytes_; }
    std::uint32_t element_bytes() const noexcept { return element_bytes_; }
    std::uint32_t registers() const noexcept { return registers_; }
    bool empty() const noexcept { return groups_.empty(); }

    /// The groups of a phase, see schedule::phases_of(); there are stages() + 1 phases.
    std::span<const Group> phase(std::size_t phase) const noexcept {
        return std::span(groups_).subspan(phases_[phase], phases_[phase + 1] - phases_[phase]);
    }
    std::span<const Op> ops(const Group& group) const noexcept {
        return std::span(ops_).subspan(group.first_op, group.ops);
    }
    std::span<const std::uint32_t> peers(const Group& group) const noexcept {
        return std::span(peers_).subspan(group.first_peer, group.peers);
    }
    /// The ranks that this rank exchanges data with.
    std::span<const std::uint32_t> partners() const noexcept { return partners_; }
    Readers readers() const noexcept { return readers_; }
    std::uint32_t reader() const noexcept { return reader_; }  // if there is one

    /// Everything that this rank puts in a stage, as one vector in its memory which other ranks
    /// could read in place. nullopt: it is not in memory, or this rank would overwrite it while
    /// others read it.
    const std::optional<schedule::Slice>& shown(std::uint32_t stage) const noexcept {
        return shown_.at(stage);
    }
    /// Where, in such a vector of another rank, the last byte ends that this rank reads.
    std::uint64_t reach(std::uint32_t rank, std::uint32_t stage) const noexcept {
        return reach_[rank].at(stage);
    }
    /// True if elements that begin at this address are aligned, whatever their type is: the
    /// alignment of a type is a power of two that divides its size.
    bool aligned(std::uint64_t address) const noexcept {
        const std::uint64_t strictest = element_bytes_ & (~element_bytes_ + 1);
        return address % strictest == 0;
    }

private:
    void add(const schedule::Step& step);
    void add_put(const schedule::Step& step);
    Group& open_group(const schedule::Step& step);
    Operand written(const schedule::Slice& slice);
    Operand read(const schedule::Slice& slice);
    void find_partners(const schedule::Schedule& schedule);
    void find_shown(const schedule::Schedule& schedule, std::span<const std::uint32_t> phases);
    std::uint64_t offset_at(std::uint64_t place) const;

    std::uint32_t element_bytes_;
    std::uint32_t stages_;
    std::uint64_t rounds_;
    std::uint64_t extent_bytes_;
    bool in_slot_;
    std::uint64_t written_bytes_ = 0;
    std::uint32_t registers_ = 0;
    std::vector<Op> ops_;
    std::vector<std::uint32_t> peers_;
    std::vector<Group> groups_;
    std::vector<std::size_t> phases_;
    std::vector<std::uint32_t> partners_;
    Readers readers_ = Readers::none;
    std::uint32_t reader_ = 0;
    std::array<std::optional<schedule::Slice>, MemoryLayout::kStages> shown_{};
    std::vector<std::array<std::uint64_t, MemoryLayout::kStages>> reach_;  // by rank

    // While it is built.
    schedule::Chunks chunks_{};     // one place each
    std::uint64_t place_size_ = 0;  // elements; 0: there is only one place
    struct Copied {
        schedule::Slice from{};
        std::uint64_t place = 0;
        std::uint32_t stage = 0;
        friend bool operator==(const Copied&, const Copied&) = default;
    };
    std::vector<Copied> copied_;
    std::vector<std::uint64_t> in_registers_;  // scratch offsets of the open group's registers
    bool open_ = false;                        // the last group's result is in a register
    schedule::Slice result_{};                 // what the last group wrote
};

}  // namespace nexar::engine
