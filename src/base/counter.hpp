#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "base/cache_line.hpp"
#include "base/thread_index.hpp"

namespace nexar {

/// A sum modulo 2^64. Any thread can add to it without waiting; up to 16 threads do so without
/// sharing a cache line. Do not call add() from a signal handler: if it interrupts add() in the
/// same thread, one of the additions may be lost.
///
/// Costs 2 KiB: use it for state that threads share, not per message.
class ShardedSum {
public:
    void add(std::uint64_t n) noexcept {
        const unsigned index = thread_index();
        if (index < kOwned) [[likely]] {
            // The shard has one writer at a time, so the read-modify-write need not be atomic.
            std::atomic<std::uint64_t>& own = shards_[index].sum;
            own.store(own.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
        } else {
            shards_[kOwned + index % kShared].sum.fetch_add(n, std::memory_order_relaxed);
        }
    }

    /// Includes everything added by this thread and by threads that it joined or otherwise
    /// synchronised with, and some of the concurrent additions of others.
    std::uint64_t value() const noexcept {
        std::uint64_t total = 0;
        for (const Shard& shard : shards_) total += shard.sum.load(std::memory_order_relaxed);
        return total;
    }

private:
    static constexpr unsigned kOwned = 16;   // one per thread, by thread_index()
    static constexpr unsigned kShared = 16;  // shared by all other threads

    struct alignas(kCacheLine) Shard {
        std::atomic<std::uint64_t> sum{0};
    };

    std::array<Shard, kOwned + kShared> shards_;
};

/// The description of a counter that users of the metrics read.
struct CounterSpec {
    std::string name{};  // snake_case, "pool_misses"
    std::string unit{};  // "buffers", "bytes"
    std::string help{};  // one sentence
};

/// A named number that only grows, created by CounterRegistry::add(). Any thread may add to it, at
/// the cost of ShardedSum.
class Counter {
public:
    explicit Counter(CounterSpec spec) noexcept : spec_(std::move(spec)) {}
    Counter(const Counter&) = delete;
    Counter& operator=(const Counter&) = delete;

    void add(std::uint64_t n = 1) noexcept { sum_.add(n); }

    /// Never less than an earlier value that the same thread read.
    std::uint64_t value() const noexcept { return sum_.value(); }

    const CounterSpec& spec() const noexcept { return spec_; }

private:
    const CounterSpec spec_;
    ShardedSum sum_;
};

}  // namespace nexar
