#include "base/buffer_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/pool_poison.hpp"
#include "base/try.hpp"

namespace nexar {

namespace {

constexpr std::size_t kMayOutgrow = 4;  // times the limit of the buffer's original tier

std::size_t whole_pages(std::size_t bytes) {
    return (bytes + kPoolPage - 1) / kPoolPage * kPoolPage;
}

PoolUsage usage(std::uint64_t misses, std::uint64_t reserved, std::uint64_t most) {
    return {.misses = misses, .bytes_in_use = reserved, .bytes_high_water = most};
}

}  // namespace

void PooledBuffer::swap(PooledBuffer& other) noexcept {
    std::swap(pool_, other.pool_);
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(first_capacity_, other.first_capacity_);
    std::swap(release_, other.release_);
}

void PooledBuffer::give_back() noexcept {
    if (pool_ != nullptr) {
        pool_->give_back(data_, capacity_, first_capacity_);
    } else {
        release_->release({data_, capacity_});
    }
}

Result<void> PooledBuffer::resize(std::size_t bytes) {
    if (bytes > capacity_) {
        if (pool_ == nullptr) {
            return Error(Errc::invalid_argument,
                         fmt::format("{} buffer of {} bytes cannot grow to {}; only buffers "
                                     "checked out from a pool can grow beyond their capacity",
                                     release_ ? "an adopted" : "an empty", capacity_, bytes));
        }
        NEXAR_TRY_VALUE(larger, pool_->checkout(bytes));
        std::memcpy(larger.data_, data_, size_);
        larger.first_capacity_ = first_capacity_;
        swap(larger);
    }
    size_ = bytes;
    return {};
}

void BufferPool::Reserved::add(std::size_t bytes) noexcept {
    const std::uint64_t now = now_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
    std::uint64_t most = most_.load(std::memory_order_relaxed);
    while (most < now && !most_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
    }
}

void BufferPool::Reserved::subtract(std::size_t bytes) noexcept {
    now_.fetch_sub(bytes, std::memory_order_relaxed);
}

BufferPool::BufferPool(const PoolProfile& profile, PoolMemory& memory) : memory_(memory) {
    for (const PoolTier& tier : profile.tiers()) tiers_.push_back(std::make_unique<Tier>(tier));
}

BufferPool::~BufferPool() {
    trim();
    NEXAR_ASSERT(reserved_.now() == 0,
                 "a buffer pool was destroyed while some of its buffers were still checked out");
}

BufferPool::Tier& BufferPool::tier_for(std::size_t bytes) const noexcept {
    return **std::ranges::find_if(tiers_,
                                  [bytes](const auto& tier) { return bytes <= tier->limit_bytes; });
}

Result<PoolBlock> BufferPool::reserve(std::size_t bytes) {
    const PoolBlock block = memory_.allocate(bytes);
    if (block.memory == nullptr) {
        return Error(
            Errc::out_of_memory,
            fmt::format(
                "the system could not allocate {} bytes for a buffer; the pool holds {} bytes",
                bytes, reserved_.now()));
    }
    reserved_.add(bytes);
    (bytes > largest() ? unpooled_.reserved : tier_for(bytes).reserved).add(bytes);
    return block;
}

void BufferPool::release(std::byte* block, std::size_t capacity) noexcept {
    memory_.release(block, capacity);
    reserved_.subtract(capacity);
    (capacity > largest() ? unpooled_.reserved : tier_for(capacity).reserved).subtract(capacity);
}

Result<PooledBuffer> BufferPool::checkout(std::size_t bytes) {
    return checkout(bytes, false);
}

Result<PooledBuffer> BufferPool::checkout_zeroed(std::size_t bytes) {
    return checkout(bytes, true);
}

Result<PooledBuffer> BufferPool::checkout(std::size_t bytes, bool zeroed) {
    if (bytes > largest()) {
        if (bytes > kMaxBytes) {
            return Error(
                Errc::invalid_argument,
                fmt::format("a buffer of {} bytes was requested; the maximum is {} (1 TiB)", bytes,
                            kMaxBytes));
        }
        return new_buffer(bytes, whole_pages(bytes), zeroed);
    }
    const SizeClass size_class = class_for(bytes);
    const std::size_t capacity = class_bytes(size_class);
    Tier& tier = tier_for(bytes);
    std::byte* const block = tier.shelf.take(size_class);
    if (block == nullptr) return new_buffer(bytes, capacity, zeroed);
    unpoison(block, capacity);
    tier.hits.add(1);
    if (zeroed) std::memset(block, 0, bytes);
    return PooledBuffer(*this, block, bytes, capacity);
}

Result<PooledBuffer> BufferPool::new_buffer(std::size_t bytes, std::size_t capacity, bool zeroed) {
    NEXAR_TRY_VALUE(block, reserve(capacity));
    (capacity > largest() ? unpooled_.misses : tier_for(capacity).misses).add(1);
    if (zeroed && !block.zeroed) std::memset(block.memory, 0, bytes);
    return PooledBuffer(*this, block.memory, bytes, capacity);
}

void BufferPool::give_back(std::byte* block, std::size_t capacity,
                           std::size_t first_capacity) noexcept {
    if (capacity <= largest() && capacity <= kMayOutgrow * tier_for(first_capacity).limit_bytes) {
        // Poison before put(): from then on another thread may check the block out.
        poison(block, capacity);
        if (tier_for(capacity).shelf.put(block, class_for(capacity))) return;
        unpoison(block, capacity);
    }
    release(block, capacity);
}

std::size_t BufferPool::trim() noexcept {
    std::size_t freed = 0;
    for (const auto& tier : tiers_) {
        for (std::size_t place = 0; place < tier->shelf.places(); ++place) {
            const auto [block, size_class] = tier->shelf.take_from(place);
            if (block == nullptr) continue;
            unpoison(block, class_bytes(size_class));
            release(block, class_bytes(size_class));
            freed += class_bytes(size_class);
        }
    }
    return freed;
}

PoolStatistics BufferPool::statistics() const {
    PoolStatistics result;
    result.unpooled =
        usage(unpooled_.misses.value(), unpooled_.reserved.now(), unpooled_.reserved.most());
    result.total = result.unpooled;
    for (const auto& tier : tiers_) {
        PoolUsage row = usage(tier->misses.value(), tier->reserved.now(), tier->reserved.most());
        row.hits = tier->hits.value();
        // Without min(), a block that moves between the two reads could make the difference
        // negative.
        row.bytes_held = std::min<std::uint64_t>(tier->shelf.bytes(), row.bytes_in_use);
        row.bytes_in_use -= row.bytes_held;
        result.total.hits += row.hits;
        result.total.misses += row.misses;
        result.total.bytes_held += row.bytes_held;
        result.total.bytes_in_use += row.bytes_in_use;
        result.tiers.push_back({.name = tier->name, .usage = row});
    }
    result.total.bytes_high_water = reserved_.most();
    return result;
}

}  // namespace nexar
