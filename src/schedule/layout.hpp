#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "schedule/request.hpp"

namespace nexar::schedule {

/// Chunk i of a buffer divided by `chunks`, and the chunks from `begin` up to, but not including,
/// `end`.
inline Slice chunk(const Slice& whole, const Chunks& chunks, std::uint32_t i) {
    return part(whole, chunks.offset(i), chunks.count(i));
}
inline Slice chunk_range(const Slice& whole, const Chunks& chunks, std::uint32_t begin,
                         std::uint32_t end) {
    return part(whole, chunks.offset(begin), chunks.offset(end) - chunks.offset(begin));
}

/// Consecutive chunks from `begin` up to, but not including, `end`.
struct Span {
    std::uint32_t begin = 0;
    std::uint32_t end = 0;

    bool empty() const noexcept { return begin == end; }
};

/// The `count` chunks from `first` on, wrapping around the end of the world: one span in memory, or
/// two. Both ends of a message divide it equally, because it concerns the same chunks.
constexpr std::array<Span, 2> spans_around(std::uint32_t first, std::uint32_t count,
                                           std::uint32_t world) noexcept {
    const std::uint32_t before_end = std::min(count, world - first);
    return {Span{first, first + before_end}, Span{0, count - before_end}};
}

/// A binomial tree over positions 0..world-1 with its root at position 0. The subtree of a position
/// consists of that position and those that follow it, so it owns consecutive chunks:
///
///     0 -+- 4 -+- 6 --- 7        the parent of v is v without its lowest bit
///        |     +- 5
///        +- 2 --- 3
///        +- 1
class Binomial {
public:
    Binomial(std::uint32_t world, std::uint32_t root) noexcept : world_(world), root_(root) {}

    std::uint32_t position(std::uint32_t rank) const noexcept {
        return distance(root_, rank, world_);
    }
    std::uint32_t rank(std::uint32_t position) const noexcept {
        return around(root_, position, world_);
    }
    static std::uint32_t parent(std::uint32_t position) noexcept {
        return position & (position - 1);
    }

    /// Number of positions in the subtree, including its own root.
    std::uint32_t size(std::uint32_t position) const noexcept {
        if (position == 0) return world_;
        return std::min(std::uint32_t{1} << static_cast<std::uint32_t>(std::countr_zero(position)),
                        world_ - position);
    }

    /// The distances from a position to its children, largest subtree first, are
    ///     for (d = first_child(v); d > 0; d /= 2)
    std::uint32_t first_child(std::uint32_t position) const noexcept {
        const std::uint32_t positions = size(position);
        return positions < 2 ? 0 : std::bit_floor(positions - 1);
    }

private:
    std::uint32_t world_;
    std::uint32_t root_;
};

}  // namespace nexar::schedule
