#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/cache_line.hpp"
#include "base/thread_index.hpp"

namespace nexar {

/// A sum modulo 2^64 that any thread adds to without waiting and, up to 16 threads, without sharing
/// a cache line with another one. Not for signal handlers: one that interrupts add() in its own
/// thread may lose an addition.
///
/// Costs 2 KiB: use it where threads meet, not per message.
class ShardedSum {
public:
    void add(std::uint64_t n) noexcept {
        const unsigned index = thread_index();
        if (index < kOwned) [[likely]] {
            // The shard has one writer at a time, so the addition need not be atomic as a whole.
            std::atomic<std::uint64_t>& own = shards_[index].sum;
            own.store(own.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
        } else {
            shards_[kOwned + index % kShared].sum.fetch_add(n, std::memory_order_relaxed);
        }
    }

    /// Everything added by this thread, by threads that it joined or otherwise synchronised with,
    /// and some of what others are adding now.
    std::uint64_t value() const noexcept {
        std::uint64_t total = 0;
        for (const Shard& shard : shards_) total += shard.sum.load(std::memory_order_relaxed);
        return total;
    }

private:
    static constexpr unsigned kOwned = 16;   // by the thread with this thread_index()
    static constexpr unsigned kShared = 16;  // among all further threads

    struct alignas(kCacheLine) Shard {
        std::atomic<std::uint64_t> sum{0};
    };

    std::array<Shard, kOwned + kShared> shards_;
};

/// What a counter counts, in the words that a user of the metrics reads.
struct CounterSpec {
    std::string name{};  // snake_case, "pool_misses"
    std::string unit{};  // "buffers", "bytes"
    std::string help{};  // one sentence
};

/// A named number that only grows, made by CounterRegistry::add(). Any thread adds, at the price of
/// ShardedSum.
class Counter {
public:
    explicit Counter(CounterSpec spec) noexcept : spec_(std::move(spec)) {}
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;

    void add(std::uint64_t n = 1) noexcept { sum_.add(n); }

    /// Never less than what the same thread read before.
    std::uint64_t value() const noexcept { return sum_.value(); }

    const CounterSpec& spec() const noexcept { return spec_; }

private:
    const CounterSpec spec_;
    ShardedSum sum_;
};

}  // namespace nexar
