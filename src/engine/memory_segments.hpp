#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "engine/memory_layout.hpp"
#include "port/shared_memory.hpp"

namespace nexar::engine {

/// The segments of all ranks of a communicator. Words are read and written whole: a rank that
/// writes nonsense to its segment can give others wrong data, but nothing outside the segment.
class MemorySegments {
public:
    /// `others` by rank, nullptr for this rank. All segments must have the same size, of which
    /// MemoryLayout::of() accepts at least the smallest.
    MemorySegments(std::shared_ptr<port::SharedMemory> own,
                   std::vector<std::shared_ptr<const port::PeerMemory>> others, std::uint32_t me,
                   const MemoryLayout& layout)
        : own_(std::move(own)), others_(std::move(others)), me_(me), layout_(layout) {
        base_ = own_->bytes().data();
        for (const auto& other : others_) {
            bases_.push_back(other == nullptr ? base_ : other->bytes().data());
        }
    }

    std::uint32_t world() const noexcept { return static_cast<std::uint32_t>(bases_.size()); }
    std::uint32_t me() const noexcept { return me_; }
    const MemoryLayout& layout() const noexcept { return layout_; }

    std::byte* own(std::size_t offset) const noexcept { return base_ + offset; }
    const std::byte* at(std::uint32_t rank, std::size_t offset) const noexcept {
        return bases_[rank] + offset;
    }

    std::uint64_t load(std::uint32_t rank, std::size_t offset,
                       std::memory_order order = std::memory_order_relaxed) const noexcept {
        // atomic_ref has no form for const words; a load does not write.
        auto* const word = reinterpret_cast<std::uint64_t*>(  // NOLINT
            const_cast<std::byte*>(bases_[rank] + offset));   // NOLINT
        return std::atomic_ref<std::uint64_t>(*word).load(order);
    }
    void store(std::size_t offset, std::uint64_t value,
               std::memory_order order = std::memory_order_relaxed) const noexcept {
        auto* const word = reinterpret_cast<std::uint64_t*>(base_ + offset);  // NOLINT
        std::atomic_ref<std::uint64_t>(*word).store(value, order);
    }

    /// How far a rank is, see progress_key(): from all words that it publishes.
    std::uint64_t progress(std::uint32_t rank) const noexcept {
        const std::uint64_t word = load(rank, 0, std::memory_order_acquire);
        std::uint64_t slots = 0;
        for (const std::uint64_t slot : {0U, 1U}) {
            const std::uint64_t seen = load(rank, layout_.slot(slot), std::memory_order_acquire);
            if (seen > slots) slots = seen;
        }
        const std::uint64_t entered = slots == 0 ? 0 : progress_key(slots - 1, kEntered);
        return word > entered ? word : entered;
    }

private:
    std::shared_ptr<port::SharedMemory> own_;
    std::vector<std::shared_ptr<const port::PeerMemory>> others_;
    std::uint32_t me_;
    MemoryLayout layout_;
    std::byte* base_ = nullptr;
    std::vector<const std::byte*> bases_;  // by rank
};

}  // namespace nexar::engine
