#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace nexar::engine {

/// How a segment is divided. The owner of a segment writes it; the other ranks read it.
///
///     0      word: the owner's progress in operations that run in rounds, see progress_key()
///     64     stamps: for each buffer and stage, the key of the piece that is in it
///     128    two slots; operation k uses slot k modulo 2. Each begins with a header:
///              0   word: the number of the operation + 1
///              8   fingerprint of the call
///              16  payload bytes, equal on all ranks
///              24  the buffer of the first round, or a payload of up to 40 bytes
///              32  in rounds, for each stage: the name of the shared buffer in which the owner
///                  shows its vector, and where the vector begins there; 0: it is in the buffers
///            and continues with a longer payload
///            four buffers; round r uses buffer (first + r) modulo 4
///
/// Memory is zero at the start, so no word or stamp that counts is zero.
struct MemoryLayout {
    static constexpr std::size_t kLine = 64;
    static constexpr std::size_t kStamps = kLine;
    static constexpr std::size_t kSlots = 2 * kLine;
    static constexpr std::size_t kFingerprint = 8;
    static constexpr std::size_t kSize = 16;
    static constexpr std::size_t kFirst = 24;
    static constexpr std::size_t kShown = 32;
    static constexpr std::size_t kInline = 24;
    static constexpr std::size_t kInlineBytes = kLine - kInline;
    static constexpr std::size_t kBuffers = 4;
    static constexpr std::size_t kStages = 2;  // at most
    static constexpr std::size_t kLeastBytes = std::size_t{16} << 10U;
    static constexpr std::size_t kMostSlotBytes = std::size_t{64} << 10U;

    std::size_t slot_bytes = 0;  // of a payload
    std::size_t buffer_bytes = 0;

    /// Fails if the segment is too small.
    static constexpr std::optional<MemoryLayout> of(std::size_t segment_bytes) noexcept {
        if (segment_bytes < kLeastBytes) return std::nullopt;
        MemoryLayout layout;
        layout.slot_bytes = whole_lines(segment_bytes / 8);
        if (layout.slot_bytes > kMostSlotBytes) layout.slot_bytes = kMostSlotBytes;
        layout.buffer_bytes = whole_lines((segment_bytes - layout.buffer(0)) / kBuffers);
        return layout;
    }

    constexpr std::size_t slot(std::uint64_t number) const noexcept {
        return kSlots + (number % 2 == 0 ? 0 : kLine + slot_bytes);
    }
    /// Where the payload of a slot is, relative to the slot.
    static constexpr std::size_t payload(std::uint64_t bytes) noexcept {
        return bytes <= kInlineBytes ? kInline : kLine;
    }
    constexpr std::size_t buffer(std::size_t i) const noexcept {
        return kSlots + 2 * (kLine + slot_bytes) + i * buffer_bytes;
    }
    static constexpr std::size_t stamp(std::size_t buffer, std::size_t stage) noexcept {
        return kStamps + (buffer * kStages + stage) * sizeof(std::uint64_t);
    }

private:
    static constexpr std::size_t whole_lines(std::size_t bytes) noexcept {
        return bytes / kLine * kLine;
    }
};
static_assert(MemoryLayout::kBuffers * MemoryLayout::kStages * 8 <= MemoryLayout::kLine);
static_assert(MemoryLayout::kShown + MemoryLayout::kStages * 16 <= MemoryLayout::kLine);

/// How far a rank is: the number of an operation and a tick within it. Keys only rise. A rank that
/// shows a key has finished with everything that it did before.
constexpr unsigned kTickBits = 14;
constexpr std::uint64_t kEntered = 0;                                   // nothing is published yet
constexpr std::uint64_t kDone = (std::uint64_t{1} << kTickBits) - 2;    // it ended
constexpr std::uint64_t kGaveUp = (std::uint64_t{1} << kTickBits) - 1;  // it failed

constexpr std::uint64_t progress_key(std::uint64_t number, std::uint64_t tick) noexcept {
    return (number + 1) << kTickBits | tick;
}

/// The tick at which a rank publishes a stage of a round, in an operation of `stages` stages: it
/// publishes stage 0 of the next round before the later stages of this one.
constexpr std::uint64_t publish_tick(std::uint64_t round, std::uint32_t stage,
                                     std::uint32_t stages) noexcept {
    if (stage == 0) return round == 0 ? 1 : 2 + (round - 1) * stages;
    return 2 + round * stages + stage;
}

/// A rank that shows this tick or a later one has finished the round.
constexpr std::uint64_t after_round(std::uint64_t round, std::uint32_t stages) noexcept {
    return 2 + (round + 1) * stages;
}

}  // namespace nexar::engine
