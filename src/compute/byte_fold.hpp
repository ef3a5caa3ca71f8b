#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nexar/result.hpp>
#include <span>
#include <vector>

#include "compute/reduce.hpp"

namespace nexar::compute {

/// On which side of the operator the incoming array stands.
enum class Side : std::uint8_t {
    left,   // out = incoming op local
    right,  // out = local op incoming
};

/// Reduces an array that arrives as bytes, in pieces of any size, cut anywhere and in any order,
/// into memory. Whole elements are folded straight from the incoming bytes; only elements that a
/// cut splits are put together in a fixed number of slots. Memory is taken only for split elements
/// of more than kLargestInPlace bytes.
///
/// The memory at `out` and `local` must outlive the fold. One thread at a time.
class ByteFold {
public:
    /// Split elements that can wait for their missing bytes at the same time. Pieces in order need
    /// one; each further stream of pieces at its own offset needs up to two.
    static constexpr std::size_t kSlots = 32;
    static constexpr std::size_t kLargestInPlace = 16;

    /// `local` is exactly `out` or disjoint from it; both hold `count` elements, and
    /// count * reducer.element_size() must not overflow, see byte_count().
    ByteFold(Reducer reducer, std::byte* out, const std::byte* local, std::size_t count, Side side);

    /// Takes `bytes` of the incoming array, the first of them at byte `offset`. Every byte of the
    /// array must be fed exactly once. Fails and changes nothing:
    /// - Errc::invalid_argument when bytes lie beyond the end, repeat inside an element that is not
    ///   complete yet, or are more in all than the array has (a repeated whole element is noticed
    ///   only by that);
    /// - Errc::limit_exceeded when another split element would have to wait than there are slots.
    Result<void> feed(std::uint64_t offset, std::span<const std::byte> bytes);

    /// Bytes taken so far, those of elements that are still incomplete included.
    std::uint64_t bytes_done() const noexcept { return bytes_done_; }

    /// All bytes came and `out` is complete. finish() of an average is the caller's.
    bool done() const noexcept { return bytes_done_ == bytes_; }

private:
    /// Bytes of a piece that lie in one element without filling it.
    struct Fragment {
        std::uint64_t element = 0;
        std::size_t first = 0;  // position of the first byte in the element
        std::span<const std::byte> bytes;
    };

    /// An element some of whose bytes have come, not all.
    class Slot {
    public:
        void begin(std::uint64_t element, std::size_t size);
        std::uint64_t element() const noexcept { return element_; }
        /// Whether a byte of the fragment came before.
        bool repeats(const Fragment& fragment) const noexcept;
        /// True when the element is complete.
        bool take(const Fragment& fragment);
        const std::byte* bytes() const noexcept {
            return large_ ? large_->bytes.data() : bytes_.data();
        }

    private:
        struct Large {
            std::vector<std::byte> bytes{};
            std::vector<bool> present{};
        };

        std::uint64_t element_ = 0;
        std::size_t missing_ = 0;
        std::uint32_t present_ = 0;  // bit i: byte i came
        std::array<std::byte, kLargestInPlace> bytes_{};
        std::unique_ptr<Large> large_{};  // for larger elements, in place of the two before
    };

    /// A piece cut at element boundaries. Head and tail may be empty.
    struct Cut {
        Fragment head;
        std::uint64_t first_whole = 0;
        std::span<const std::byte> whole;
        Fragment tail;
    };

    Cut cut(std::uint64_t offset, std::span<const std::byte> bytes) const noexcept;
    Result<void> check(const Cut& cut) const;
    std::span<const Slot> waiting() const noexcept { return std::span(slots_).first(waiting_); }
    std::size_t slot_of(std::uint64_t element) const noexcept;
    void take(const Fragment& fragment);
    void fold(std::uint64_t element, const std::byte* incoming, std::size_t count) const;

    Reducer reducer_;
    std::byte* out_;
    const std::byte* local_;
    std::uint64_t bytes_;
    std::uint64_t bytes_done_ = 0;
    Side side_;
    std::size_t waiting_ = 0;  // slots in use: the first ones, in any order
    std::array<Slot, kSlots> slots_{};
};

}  // namespace nexar::compute
