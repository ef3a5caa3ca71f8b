#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/cache_line.hpp"
#include "base/pool_memory.hpp"

namespace nexar {

/// Pooled blocks come in powers of two; class c has 4 KiB << c bytes.
using SizeClass = unsigned;

constexpr std::size_t class_bytes(SizeClass size_class) noexcept {
    return kPoolPage << size_class;
}

/// The smallest class that holds `bytes`.
constexpr SizeClass class_for(std::size_t bytes) noexcept {
    return bytes <= kPoolPage ? 0 : static_cast<SizeClass>(std::bit_width((bytes - 1) / kPoolPage));
}

/// A fixed number of places for idle blocks of any size class.
///
/// Lock-free and without shared counters. A place is one word: null if empty, otherwise a pointer
/// into the first page of a block, whose offset from the start of the block encodes the class.
/// put() uses the first empty place and take() the first that fits. Both start searching at a place
/// that depends on the thread, so that threads touch different cache lines as long as they find
/// blocks there. Each call visits every place at most once. A place whose block left and came back
/// is as good as one that never changed, so there is no ABA problem.
class PoolShelf {
public:
    /// `places` may be 0: such a shelf is always full.
    explicit PoolShelf(std::size_t places);

    /// False if no place was free; the caller then keeps the block.
    [[nodiscard]] bool put(std::byte* block, SizeClass size_class) noexcept;

    /// A block of exactly this class, or null.
    [[nodiscard]] std::byte* take(SizeClass size_class) noexcept;

    struct Taken {
        std::byte* block = nullptr;
        SizeClass size_class = 0;
    };

    /// Empties one place and returns its block. Requires place < places().
    Taken take_from(std::size_t place) noexcept;

    /// Total bytes of all blocks; exact while no thread puts or takes.
    std::size_t bytes() const noexcept;

    std::size_t places() const noexcept { return places_; }

private:
    using Place = std::atomic<std::byte*>;
    static constexpr std::size_t kPerLine = kCacheLine / sizeof(Place);
    struct alignas(kCacheLine) Line {
        std::array<Place, kPerLine> places{};
    };

    Place& at(std::size_t place) const noexcept {
        return lines_[place / kPerLine].places[place % kPerLine];
    }
    std::size_t start() const noexcept;

    // Calls visit(place) for every place, beginning at this thread's start, until it returns true.
    template <class Visit>
    bool search(Visit visit) const noexcept;

    std::size_t places_;
    std::unique_ptr<Line[]> lines_;
};

}  // namespace nexar
