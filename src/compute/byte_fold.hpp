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

/// The side of the operator on which the incoming array is.
enum class Side : std::uint8_t {
    left,   // out = incoming op local
    right,  // out = local op incoming
};

/// Reduces an incoming array of bytes into memory. The bytes may arrive in any order, in pieces of
/// any size, cut anywhere. Whole elements are folded directly from the incoming bytes; only split
/// elements are reassembled, in a fixed number of slots. Allocates only for split elements of more
/// than kLargestInPlace bytes.
///
/// The memory at `out` and `local` must outlive the fold. Use by one thread at a time.
class ByteFold {
public:
    /// How many split elements can be incomplete at the same time. Pieces in order need one slot;
    /// each further sequence of pieces at its own offset needs up to two.
    static constexpr std::size_t kSlots = 32;
    static constexpr std::size_t kLargestInPlace = 16;

    /// `local` is exactly `out` or disjoint from it; both hold `count` elements, and
    /// count * reducer.element_size() must not overflow, see byte_count().
    ByteFold(Reducer reducer, std::byte* out, const std::byte* local, std::size_t count, Side side);

    /// Takes `bytes` of the incoming array, starting at byte `offset`. Every byte of the array must
    /// be fed exactly once. On failure it changes nothing; it fails with
    /// - Errc::invalid_argument if bytes exceed the array, repeat within an incomplete element, or
    ///   exceed the size of the array in total (the only sign of a repeated whole element);
    /// - Errc::limit_exceeded if there is no free slot for another split element.
    Result<void> feed(std::uint64_t offset, std::span<const std::byte> bytes);

    /// Bytes taken so far, including those of incomplete elements.
    std::uint64_t bytes_done() const noexcept { return bytes_done_; }

    /// True if all bytes have arrived and `out` is complete. For an average, the caller must still
    /// call finish().
    bool done() const noexcept { return bytes_done_ == bytes_; }

private:
    /// Bytes of a piece that cover part of one element.
    struct Fragment {
        std::uint64_t element = 0;
        std::size_t first = 0;  // position of the first byte in the element
        std::span<const std::byte> bytes;
    };

    /// An incomplete element.
    class Slot {
    public:
        void begin(std::uint64_t element, std::size_t size);
        std::uint64_t element() const noexcept { return element_; }
        /// True if a byte of the fragment has arrived before.
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
        std::uint32_t present_ = 0;  // bit i: byte i has arrived
        std::array<std::byte, kLargestInPlace> bytes_{};
        std::unique_ptr<Large> large_{};  // for larger elements, instead of the two above
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
