#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/counter.hpp"
#include "base/pool_memory.hpp"
#include "base/pool_profile.hpp"
#include "base/pool_shelf.hpp"

namespace nexar {

class BufferPool;

/// Memory on loan from a BufferPool, or adopted from elsewhere. The destructor returns it to its
/// owner; moving transfers it and leaves an empty buffer behind. Use by one thread at a time.
class PooledBuffer {
public:
    PooledBuffer() noexcept = default;
    PooledBuffer(PooledBuffer&& other) noexcept { swap(other); }
    PooledBuffer& operator=(PooledBuffer&& other) noexcept {
        PooledBuffer(std::move(other)).swap(*this);
        return *this;
    }
    ~PooledBuffer() {
        if (pool_ != nullptr || release_ != nullptr) give_back();
    }

    /// Wraps memory that somebody else owns. The destructor calls `release(memory)` exactly once,
    /// on its own thread; `release` must not throw. If adopt() itself throws, the caller keeps the
    /// memory and `release` is not called.
    template <std::invocable<std::span<std::byte>> Release>
    static PooledBuffer adopt(std::span<std::byte> memory, Release&& release);

    std::byte* data() noexcept { return data_; }
    const std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    std::size_t capacity() const noexcept { return capacity_; }
    std::span<std::byte> span() noexcept { return {data_, size_}; }
    std::span<const std::byte> span() const noexcept { return {data_, size_}; }

    /// Keeps the first min(size(), bytes) bytes; the rest are uninitialised. Growing beyond the
    /// capacity moves the content to a larger block of the pool, which invalidates pointers into
    /// the buffer. Fails with the errors of BufferPool::checkout(), and then changes nothing. An
    /// adopted or empty buffer cannot grow beyond its capacity: Errc::invalid_argument.
    Result<void> resize(std::size_t bytes);

private:
    friend class BufferPool;

    struct Releaser {
        virtual ~Releaser() = default;
        virtual void release(std::span<std::byte> memory) noexcept = 0;
    };
    template <class Release>
    struct ReleaserOf;

    PooledBuffer(BufferPool& pool, std::byte* data, std::size_t size, std::size_t capacity) noexcept
        : pool_(&pool), data_(data), size_(size), capacity_(capacity), first_capacity_(capacity) {}

    void swap(PooledBuffer& other) noexcept;
    void give_back() noexcept;

    BufferPool* pool_ = nullptr;  // null when adopted or empty
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
    std::size_t first_capacity_ = 0;     // at checkout, before it grew
    std::unique_ptr<Releaser> release_;  // set when adopted
};

/// Statistics of one tier, of the unpooled buffers, or of the whole pool.
struct PoolUsage {
    std::uint64_t hits = 0;              // checkouts served by an idle buffer
    std::uint64_t misses = 0;            // checkouts that allocated memory
    std::uint64_t bytes_held = 0;        // idle in the pool
    std::uint64_t bytes_in_use = 0;      // capacity of the checked-out buffers
    std::uint64_t bytes_high_water = 0;  // the maximum of held plus in use
};

struct PoolStatistics {
    struct Tier {
        std::string name{};
        PoolUsage usage{};
    };
    std::vector<Tier> tiers{};
    PoolUsage unpooled{};  // buffers above the largest tier
    PoolUsage total{};
};

/// Reuses buffers, so that not every request pays for allocation and page faults.
///
/// A request gets a block of the smallest size class that holds it. Size classes are powers of two
/// from 4 KiB, so a block is less than twice as large as the request (or 4 KiB). Each tier of the
/// profile keeps a limited number of idle blocks, over all its size classes together. A pool starts
/// empty and keeps the buffers that come back, unless
///   - the tier already holds its maximum of idle blocks, which may be 0,
///   - the buffer grew (see PooledBuffer::resize) to more than 4 times the limit of its first tier,
///   - the buffer is larger than the largest tier: it is unpooled, and rounded up to 4 KiB only;
/// in these cases it frees them. A buffer that grew less goes to the tier of its new size.
///
/// Any thread may call any function, and may return a buffer that another thread checked out.
/// Checkout and return are lock-free unless they allocate or free memory. The pool must outlive its
/// buffers; its destructor asserts this.
class BufferPool {
public:
    /// A larger request can only come from a miscalculation.
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 40;

    explicit BufferPool(const PoolProfile& profile, PoolMemory& memory = system_memory());
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;
    ~BufferPool();

    /// A buffer of `bytes` uninitialised bytes, which may be 0, aligned to 4 KiB. Fails with
    /// Errc::invalid_argument above kMaxBytes, and with Errc::out_of_memory if the allocation
    /// fails.
    Result<PooledBuffer> checkout(std::size_t bytes);

    /// The same, with all bytes zero.
    Result<PooledBuffer> checkout_zeroed(std::size_t bytes);

    /// Frees all idle buffers and returns their total size in bytes.
    std::size_t trim() noexcept;

    /// While other threads use the pool, each number is a recent value, and sums may be off by the
    /// operations in progress.
    PoolStatistics statistics() const;

private:
    friend class PooledBuffer;

    // Bytes allocated from memory_ and not released, whether idle or in use.
    class Reserved {
    public:
        void add(std::size_t bytes) noexcept;
        void subtract(std::size_t bytes) noexcept;
        std::uint64_t now() const noexcept { return now_.load(std::memory_order_relaxed); }
        std::uint64_t most() const noexcept { return most_.load(std::memory_order_relaxed); }

    private:
        std::atomic<std::uint64_t> now_{0};
        std::atomic<std::uint64_t> most_{0};
    };

    struct Tier {
        explicit Tier(const PoolTier& tier)
            : name(tier.name), limit_bytes(tier.limit_bytes), shelf(tier.keep) {}

        const std::string name;
        const std::size_t limit_bytes;
        PoolShelf shelf;
        ShardedSum hits;
        ShardedSum misses;
        Reserved reserved;
    };

    struct Unpooled {
        ShardedSum misses;
        Reserved reserved;
    };

    // A new block that says whether it is zeroed, or the error.
    Result<PoolBlock> reserve(std::size_t bytes);
    void release(std::byte* block, std::size_t capacity) noexcept;
    Result<PooledBuffer> new_buffer(std::size_t bytes, std::size_t capacity, bool zeroed);
    Result<PooledBuffer> checkout(std::size_t bytes, bool zeroed);
    void give_back(std::byte* block, std::size_t capacity, std::size_t first_capacity) noexcept;

    std::size_t largest() const noexcept { return tiers_.back()->limit_bytes; }
    // For sizes up to largest().
    Tier& tier_for(std::size_t bytes) const noexcept;

    Unpooled unpooled_;
    Reserved reserved_;  // tiers and unpooled together
    PoolMemory& memory_;
    std::vector<std::unique_ptr<Tier>> tiers_;
};

template <class Release>
struct PooledBuffer::ReleaserOf final : Releaser {
    // NOLINTNEXTLINE(performance-unnecessary-value-param): moved if Release is movable
    explicit ReleaserOf(Release release) : call(std::move(release)) {}
    void release(std::span<std::byte> memory) noexcept override { std::invoke(call, memory); }

    Release call;
};

template <std::invocable<std::span<std::byte>> Release>
PooledBuffer PooledBuffer::adopt(std::span<std::byte> memory, Release&& release) {
    PooledBuffer buffer;
    buffer.release_ =
        std::make_unique<ReleaserOf<std::decay_t<Release>>>(std::forward<Release>(release));
    buffer.data_ = memory.data();
    buffer.size_ = memory.size();
    buffer.capacity_ = memory.size();
    return buffer;
}

}  // namespace nexar
