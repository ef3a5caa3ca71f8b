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

/// Memory on loan from a BufferPool, or adopted from elsewhere. Goes back where it came from when
/// destroyed; moving hands it on, and leaves an empty buffer behind. One thread at a time.
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

    /// Wraps memory that somebody else owns. `release(memory)` is called exactly once, when the
    /// buffer is destroyed, on the thread that does it; it must not throw. If adopt() itself
    /// throws, the memory is still the caller's and `release` is not called.
    template <std::invocable<std::span<std::byte>> Release>
    static PooledBuffer adopt(std::span<std::byte> memory, Release&& release);

    std::byte* data() noexcept { return data_; }
    const std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    std::size_t capacity() const noexcept { return capacity_; }
    std::span<std::byte> span() noexcept { return {data_, size_}; }
    std::span<const std::byte> span() const noexcept { return {data_, size_}; }

    /// Keeps the first min(size(), bytes) bytes; further ones are uninitialised. Beyond the
    /// capacity they move to a larger block of the pool: pointers into the buffer end. On failure,
    /// with the errors of BufferPool::checkout(), nothing has changed. Only a buffer of a pool can
    /// grow beyond its capacity; for an adopted or empty one that is Errc::invalid_argument.
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

/// What one tier, the unpooled buffers, or the whole pool did so far.
struct PoolUsage {
    std::uint64_t hits = 0;              // checkouts served by an idle buffer
    std::uint64_t misses = 0;            // checkouts that took new memory
    std::uint64_t bytes_held = 0;        // idle in the pool
    std::uint64_t bytes_in_use = 0;      // capacity of the buffers that are out
    std::uint64_t bytes_high_water = 0;  // the most that held and in use ever were together
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

/// Buffers that are used again instead of being allocated and faulted in each time.
///
/// A request gets a block of the smallest size class that holds it: a power of two from 4 KiB, so
/// less than twice what was asked for (or 4 KiB). Each tier of the profile keeps a number of idle
/// blocks over all its classes. It starts empty; what comes back is kept, unless
///   - its tier keeps as many already (a tier that keeps 0 keeps none),
///   - it grew (see PooledBuffer::resize) to more than 4 times the limit of the tier that it was
///   checked
///     out from,
///   - it is larger than the largest tier: such a buffer is unpooled, rounded up to 4 KiB only;
/// then it is freed. A buffer that grew less than that is kept in the tier that its new size
/// belongs to.
///
/// Any thread may call anything, and return a buffer that another one checked out. Checkout and
/// return are lock-free as long as no memory is allocated or freed. The pool must outlive its
/// buffers, which its destructor asserts.
class BufferPool {
public:
    /// A request for more is an error in a computation, not a wish.
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 40;

    explicit BufferPool(const PoolProfile& profile, PoolMemory& memory = system_memory());
    BufferPool(const BufferPool&) = delete;
    BufferPool& operator=(const BufferPool&) = delete;
    ~BufferPool();

    /// A buffer of `bytes` uninitialised bytes; 0 is fine. It starts at a multiple of 4 KiB.
    /// Errc::invalid_argument above kMaxBytes, Errc::out_of_memory when there is none.
    Result<PooledBuffer> checkout(std::size_t bytes);

    /// The same with all `bytes` bytes 0.
    Result<PooledBuffer> checkout_zeroed(std::size_t bytes);

    /// Frees all idle buffers; how many bytes these were.
    std::size_t trim() noexcept;

    /// While other threads use the pool each number is of the recent past, and their sums may be
    /// off by what is under way.
    PoolStatistics statistics() const;

private:
    friend class PooledBuffer;

    // Bytes taken from memory_ and not released, idle or not.
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

    // Block with what is known of its content, or the error.
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
    // NOLINTNEXTLINE(performance-unnecessary-value-param): moved, where Release can be moved
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
