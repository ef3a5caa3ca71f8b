#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/assert.hpp"
#include "base/cache_line.hpp"

namespace nexar {

/// A queue of fixed capacity between any number of producing and consuming threads.
///
/// Holds exactly `capacity` values, whether or not that is a power of two. Allocates only in the
/// constructor. Values of one producer come out in the order in which it pushed them. No call
/// blocks: try_push() on a full queue and try_pop() on an empty one return at once. A thread that
/// is suspended inside a call can make the queue look full (or empty) to others a moment too long,
/// but never makes them wait, or lose or duplicate a value.
///
/// After D. Vyukov's bounded MPMC queue (1024cores.net): every cell carries a number that says
/// whose turn it is. A position is a lap over the cells and an index in it, packed into one word;
/// `lap_` is a power of two above the capacity, so positions wrap around the word without harm.
///
/// For the cell at a position p:  turn == p          empty, waits for the push at p
///                                turn == p + 1      holds the value of p, waits for the pop at p
///                                turn == p + lap_   empty, waits for the push one lap later
template <class T>
// NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding): the padding keeps both ends apart.
class BoundedQueue {
    // If moving a value threw, its cell would stay claimed for ever.
    static_assert(std::is_nothrow_move_constructible_v<T> && std::is_nothrow_destructible_v<T>);

public:
    static constexpr std::size_t kMaxCapacity = std::size_t{1} << 32;

    /// `capacity` from 1 to kMaxCapacity. Throws std::bad_alloc.
    explicit BoundedQueue(std::size_t capacity) : BoundedQueue(capacity, 0) {}

    /// An empty queue in the state after `laps` times `capacity` pushes and pops, for tests of the
    /// wrap-around.
    BoundedQueue(std::size_t capacity, std::uint64_t laps);

    BoundedQueue(const BoundedQueue&) = delete;
    BoundedQueue& operator=(const BoundedQueue&) = delete;

    /// Destroys the remaining values. No other thread may still use the queue.
    ~BoundedQueue() {
        while (try_pop()) {
        }
    }

    /// False if the queue is full; `value` is then unchanged.
    [[nodiscard]] bool try_push(T&& value) noexcept { return emplace(std::move(value)); }
    [[nodiscard]] bool try_push(const T& value) noexcept
        requires std::is_nothrow_copy_constructible_v<T>
    {
        return emplace(value);
    }

    /// The oldest value, or nullopt if the queue is empty.
    [[nodiscard]] std::optional<T> try_pop() noexcept;

    /// Exact while no other thread pushes or pops, otherwise a recent value.
    std::size_t size_approx() const noexcept;

    std::size_t capacity() const noexcept { return capacity_; }

private:
    struct Cell {
        std::atomic<std::uint64_t> turn;
        // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be a pointer
        alignas(T) std::byte storage[sizeof(T)];
    };

    template <class U>
    bool emplace(U&& value) noexcept;

    Cell& cell_at(std::uint64_t position) const noexcept { return cells_[position & (lap_ - 1)]; }

    std::uint64_t after(std::uint64_t position) const noexcept {
        const std::uint64_t index = position & (lap_ - 1);
        return index + 1 < capacity_ ? position + 1 : position - index + lap_;
    }

    static std::size_t checked(std::size_t capacity) noexcept {
        NEXAR_ASSERT(capacity >= 1 && capacity <= kMaxCapacity, "a queue holds 1 to 2^32 values");
        return capacity;
    }

    // How far the cell's turn is ahead of (if negative: behind) the one its user waits for.
    static std::int64_t ahead(std::uint64_t turn, std::uint64_t awaited) noexcept {
        return static_cast<std::int64_t>(turn - awaited);
    }

    const std::size_t capacity_;
    const std::uint64_t lap_;
    const std::unique_ptr<Cell[]> cells_;
    alignas(kContendedDistance) std::atomic<std::uint64_t> tail_;  // the next push
    alignas(kContendedDistance) std::atomic<std::uint64_t> head_;  // the next pop
};

template <class T>
BoundedQueue<T>::BoundedQueue(std::size_t capacity, std::uint64_t laps)
    : capacity_(checked(capacity)),
      lap_(std::bit_ceil(std::uint64_t{capacity} + 1)),
      cells_(std::make_unique_for_overwrite<Cell[]>(capacity)),
      tail_(laps * lap_),
      head_(laps * lap_) {
    for (std::uint64_t i = 0; i < capacity; ++i) {
        cells_[i].turn.store(laps * lap_ + i, std::memory_order_relaxed);
    }
}

template <class T>
template <class U>
bool BoundedQueue<T>::emplace(U&& value) noexcept {
    std::uint64_t position = tail_.load(std::memory_order_relaxed);
    for (;;) {
        Cell& cell = cell_at(position);
        const std::int64_t lead = ahead(cell.turn.load(std::memory_order_acquire), position);
        if (lead < 0) return false;
        if (lead > 0) {
            position = tail_.load(std::memory_order_relaxed);
        } else if (tail_.compare_exchange_weak(position, after(position),
                                               std::memory_order_relaxed)) {
            ::new (static_cast<void*>(cell.storage)) T(std::forward<U>(value));
            cell.turn.store(position + 1, std::memory_order_release);
            return true;
        }
    }
}

template <class T>
std::optional<T> BoundedQueue<T>::try_pop() noexcept {
    std::uint64_t position = head_.load(std::memory_order_relaxed);
    for (;;) {
        Cell& cell = cell_at(position);
        const std::int64_t lead = ahead(cell.turn.load(std::memory_order_acquire), position + 1);
        if (lead < 0) return std::nullopt;
        if (lead > 0) {
            position = head_.load(std::memory_order_relaxed);
        } else if (head_.compare_exchange_weak(position, after(position),
                                               std::memory_order_relaxed)) {
            T* const stored = std::launder(reinterpret_cast<T*>(cell.storage));
            std::optional<T> value(std::move(*stored));
            stored->~T();
            cell.turn.store(position + lap_, std::memory_order_release);
            return value;
        }
    }
}

template <class T>
std::size_t BoundedQueue<T>::size_approx() const noexcept {
    const std::uint64_t head = head_.load(std::memory_order_relaxed);
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    // tail and head differ by less than a lap of cells, so at most one lap boundary lies between
    // them.
    const bool wrapped = (tail & ~(lap_ - 1)) != (head & ~(lap_ - 1));
    const std::uint64_t held =
        (tail & (lap_ - 1)) - (head & (lap_ - 1)) + (wrapped ? std::uint64_t{capacity_} : 0);
    return held <= capacity_ ? static_cast<std::size_t>(held) : capacity_;
}

}  // namespace nexar
