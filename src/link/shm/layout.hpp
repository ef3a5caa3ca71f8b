#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/cache_line.hpp"

// The memory of one side of a link: a page with the words below, then the ring of the records that
// this side writes. The owner maps it writable; the peer can only map it for reading. Nothing in it
// can be trusted by the peer: each word is read once into a local variable, and then checked.
namespace nexar::shm {

using SharedWord = std::atomic<std::uint64_t>;
static_assert(SharedWord::is_always_lock_free && sizeof(SharedWord) == 8);
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

/// Bits of Control::sleep: which events must ring the bell. The bits above count how often the
/// owner fell asleep, so that a peer rings once for each time.
inline constexpr std::uint32_t kWantsArrivals = 1;
inline constexpr std::uint32_t kWantsRoom = 2;
inline constexpr std::uint32_t kSleepStep = 4;

inline constexpr std::size_t kMaxReasonBytes = 200;

struct Control {
    /// Position in the peer's ring before which the owner has read everything.
    alignas(kContendedDistance) SharedWord taken{0};
    /// 0 while the owner polls.
    alignas(kContendedDistance) std::atomic<std::uint32_t> sleep{0};
    /// 1 when the owner has ended the link on purpose; the reason was written before.
    alignas(kContendedDistance) std::atomic<std::uint32_t> ended{0};
    std::uint32_t reason_bytes = 0;
    std::array<char, kMaxReasonBytes> reason{};
};
static_assert(sizeof(Control) <= 4096);

}  // namespace nexar::shm
