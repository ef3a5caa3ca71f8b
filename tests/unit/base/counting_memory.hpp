#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>

#include "base/pool_memory.hpp"

namespace nexar {

/// System memory filled with garbage. Counts the allocated blocks, can simulate exhaustion, and can
/// falsely claim that blocks are zeroed. Thread-safe.
class CountingMemory final : public PoolMemory {
public:
    static constexpr std::byte kGarbage{0xa5};

    PoolBlock allocate(std::size_t bytes) noexcept override {
        if (left_.fetch_sub(1) <= 0) return {};
        const PoolBlock block = system_memory().allocate(bytes);
        if (block.memory == nullptr) return {};
        std::memset(block.memory, static_cast<int>(kGarbage), bytes);
        bytes_ += bytes;
        ++blocks_;
        return {.memory = block.memory, .zeroed = claims_zeroed};
    }

    void release(std::byte* memory, std::size_t bytes) noexcept override {
        bytes_ -= bytes;
        --blocks_;
        system_memory().release(memory, bytes);
    }

    /// Fails after `allocations` more allocations.
    void run_dry_after(long allocations) { left_ = allocations; }

    std::size_t bytes() const { return bytes_; }
    long blocks() const { return blocks_; }

    bool claims_zeroed = false;

private:
    std::atomic<std::size_t> bytes_{0};
    std::atomic<long> blocks_{0};
    std::atomic<long> left_{std::numeric_limits<long>::max()};
};

/// Reserves addresses without memory behind them, for tests of large tiers on small machines. The
/// blocks must not be accessed.
class AddressesOnly final : public PoolMemory {
public:
    PoolBlock allocate(std::size_t bytes) noexcept override {
        void* const start =
            mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return {.memory = start == MAP_FAILED ? nullptr : static_cast<std::byte*>(start),
                .zeroed = true};
    }
    void release(std::byte* memory, std::size_t bytes) noexcept override { munmap(memory, bytes); }
};

}  // namespace nexar
