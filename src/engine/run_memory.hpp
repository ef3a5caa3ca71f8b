#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "port/stream.hpp"
#include "schedule/schedule.hpp"

namespace nexar::engine {

/// The memory of one space of a collective, as a list of pieces. Offsets are in bytes; pieces hold
/// whole elements.
class RunSpace {
public:
    void clear() noexcept {
        pieces_.clear();
        size_ = 0;
    }
    void add(port::Bytes piece) {
        if (piece.empty()) return;
        pieces_.push_back({.begin = size_, .memory = piece});
        size_ += piece.size();
    }
    std::uint64_t size() const noexcept { return size_; }

    /// The memory from `offset` on that is in one piece, at most `bytes`.
    port::Bytes at(std::uint64_t offset, std::uint64_t bytes) const noexcept {
        if (pieces_.size() == 1 && offset <= size_ && bytes <= size_ - offset) {
            return pieces_[0].memory.subspan(static_cast<std::size_t>(offset),
                                             static_cast<std::size_t>(bytes));
        }
        return in_pieces(offset, bytes);
    }

private:
    port::Bytes in_pieces(std::uint64_t offset, std::uint64_t bytes) const noexcept;

    struct Piece {
        std::uint64_t begin = 0;
        port::Bytes memory{};
    };
    std::vector<Piece> pieces_;
    std::uint64_t size_ = 0;
};

/// All memory of a collective on one rank. The input is never written; it is not const only because
/// the same code reads all three spaces.
class RunMemory {
public:
    RunSpace& space(schedule::Space space) noexcept {
        return spaces_[static_cast<std::size_t>(space)];
    }

    /// The part of a slice from byte `offset` on that is in one piece, at most `bytes`.
    port::Bytes at(const schedule::Slice& slice, std::uint64_t offset, std::uint64_t bytes,
                   std::uint32_t element_bytes) const noexcept {
        return spaces_[static_cast<std::size_t>(slice.space)].at(
            slice.offset * element_bytes + offset, bytes);
    }

private:
    std::array<RunSpace, 3> spaces_{};
};

}  // namespace nexar::engine
