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

/// A fixed number of places where blocks of any size class wait for their next use.
///
/// Lock-free and without shared counters: a place is one word, null when empty, else it points into
/// the first page of a block, as many bytes behind its start as say the class. A block is put into
/// the first empty place and taken from the first that fits, both searched from the thread's own
/// start, so that threads which do not run out of blocks touch different cache lines. Each call
/// looks at every place at most once. A place whose block left and came back is as good as one that
/// never changed, so there is no ABA problem.
class PoolShelf {
public:
    /// No places is allowed: such a shelf is always full.
    explicit PoolShelf(std::size_t places);

    /// False when no place was free; the block is then still the caller's.
    [[nodiscard]] bool put(std::byte* block, SizeClass size_class) noexcept;

    /// A block of exactly this class, or null.
    [[nodiscard]] std::byte* take(SizeClass size_class) noexcept;

    struct Taken {
        std::byte* block = nullptr;
        SizeClass size_class = 0;
    };

    /// Whatever lies in one place, which is left empty. For 0 <= place < places().
    Taken take_from(std::size_t place) noexcept;

    /// Bytes of all blocks; exact while nobody puts or takes.
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

    // Calls visit(place) for all places from this thread's start on, until it returns true.
    template <class Visit>
    bool search(Visit visit) const noexcept;

    std::size_t places_;
    std::unique_ptr<Line[]> lines_;
};

}  // namespace nexar
