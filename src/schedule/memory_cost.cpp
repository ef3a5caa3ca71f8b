#include "schedule/memory_cost.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "schedule/memory_parts.hpp"

namespace nexar::schedule {

namespace {

// How much a rank puts in one round. Usually all four buffers of a segment stay in the second-level
// cache of a core, and readers begin early: measured with 8 ranks on 16 cores (x86_64). If all
// ranks put and read chunks by turns, nobody waits for the first round, and larger rounds were
// faster with 2 ranks on 2 cores (aarch64). Gather and scatter follow them, unmeasured.
constexpr std::uint64_t kUsualRound = std::uint64_t{256} << 10U;
constexpr std::uint64_t kChunksRound = std::uint64_t{1} << 20U;
constexpr std::uint64_t kLineBytes = 64;
// Reading a byte to copy it takes this part of the time that folding it takes. memory_bench: two
// ranks take 0.85 of the time for an all_reduce of 1 to 16 MiB if each folds half and copies half.
constexpr double kCopied = 0.85;

/// Bytes that the slowest rank puts into its segment and reads from the others.
struct Moved {
    double put = 0;
    double read = 0;
};

Moved moved(const Algorithm& algorithm, const Extent& extent) {
    const double others = extent.world - 1;
    const double whole = extent.bytes;
    const double chunk = extent.chunk;
    if (algorithm.traits.stages == 2) {
        const bool all = algorithm.operation == Collective::all_reduce;
        // The root of a reduce reads all slices while the others are done.
        return {.put = (others + (all ? 1 : 0)) * chunk, .read = (1 + kCopied) * others * chunk};
    }
    switch (algorithm.operation) {
        case Collective::all_reduce:
        case Collective::scan:
        case Collective::exclusive_scan:
        case Collective::reduce:
            return {.put = whole, .read = others * whole};
        case Collective::broadcast:
            return {.put = whole, .read = whole};
        case Collective::all_gather:
        case Collective::gather:
            return {.put = chunk, .read = others * chunk};
        case Collective::scatter:
            return {.put = others * chunk, .read = chunk};
        case Collective::reduce_scatter:
        case Collective::all_to_all:
            return {.put = others * chunk, .read = others * chunk};
        case Collective::barrier:
            return {};
    }
    return {};
}

}  // namespace

double memory_seconds(const Algorithm& algorithm, const Extent& extent, const Memory& memory) {
    NEXAR_ASSERT(algorithm.traits.medium == Medium::memory);
    const Moved bytes = moved(algorithm, extent);
    const double whole = algorithm.traits.puts == Puts::vector ? extent.bytes : extent.chunk;
    const double rounds =
        extent.segment == 0 || whole <= extent.segment ? 1 : std::ceil(whole / extent.segment);
    const double stage = memory.latency + (extent.world - 1) * memory.per_peer;
    // An operation in rounds first compares the calls of all ranks.
    const double compare = extent.segment == 0 ? 0 : stage;
    return compare + rounds * algorithm.traits.stages * stage + bytes.put * memory.put_byte +
           bytes.read * memory.read_byte;
}

MemorySegment memory_segment(const Traits& traits, const Extent& extent,
                             std::uint32_t element_bytes, const Memory& memory,
                             std::uint64_t most_bytes) {
    const auto elements = [&](double bytes) {
        return static_cast<std::uint64_t>(bytes) / element_bytes;
    };
    const MemoryUse use{
        .world = extent.world, .count = elements(extent.bytes), .largest = elements(extent.chunk)};
    const bool one_piece =
        most_bytes == 0 || longest_put(traits, use) <= most_bytes / element_bytes;
    const bool fits_slot = memory_extent(traits, use) <= memory.slot_bytes / element_bytes;
    if (traits.stages == 1 && one_piece && fits_slot) return {.fits = true};
    const std::uint64_t places = traits.puts == Puts::chunks ? extent.world : 1;
    const auto with = [&](std::uint64_t round_bytes) {
        std::uint64_t bytes = round_bytes / places;
        if (most_bytes != 0) bytes = std::min(bytes, most_bytes);
        if (bytes > kLineBytes) bytes -= bytes % kLineBytes;
        return std::max<std::uint64_t>(bytes / element_bytes, most_bytes != 0 ? 1 : 0);
    };
    const bool chunked = traits.stages == 1 && traits.puts != Puts::vector;
    const std::uint64_t best = chunked ? kChunksRound : kUsualRound;
    for (const std::uint64_t round : {std::min(best, memory.buffer_bytes), memory.buffer_bytes}) {
        MemoryUse piece = use;
        piece.segment = with(round);
        if (piece.segment == 0 ||
            memory_extent(traits, piece) > memory.buffer_bytes / element_bytes) {
            continue;
        }
        if (memory_rounds(traits, piece) <= most_rounds(traits.stages)) {
            return {.fits = true, .segment = piece.segment};
        }
    }
    return {};
}

}  // namespace nexar::schedule
