#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "engine/memory_buffers.hpp"
#include "unit/engine/heap_segment.hpp"

namespace nexar::testing {

/// The shared buffers of all ranks of one process. Any thread may call.
class TestBuffers final : public engine::BufferFinder {
public:
    struct Made {
        std::uint64_t name = 0;
        std::shared_ptr<HeapSegment> memory{};
    };

    Made make(std::uint32_t rank, std::size_t bytes) {
        auto memory = std::make_shared<HeapSegment>(engine::whole_buffer(bytes));
        const std::lock_guard lock(mutex_);
        const std::uint64_t name = engine::kBufferNames << 32U | ++last_;
        all_[{rank, name}] = memory;
        return {.name = name, .memory = std::move(memory)};
    }
    void drop(std::uint32_t rank, std::uint64_t name) {
        const std::lock_guard lock(mutex_);
        all_.erase({rank, name});
    }
    /// While hidden, buffers seem not to have arrived yet.
    void hide(bool hidden) noexcept { hidden_ = hidden; }

    std::shared_ptr<const port::PeerMemory> find(std::uint32_t rank,
                                                 std::uint64_t name) const override {
        const std::lock_guard lock(mutex_);
        const auto found = all_.find({rank, name});
        return hidden_ || found == all_.end() ? nullptr : found->second;
    }

private:
    mutable std::mutex mutex_;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::shared_ptr<HeapSegment>> all_;
    std::uint32_t last_ = 0;
    bool hidden_ = false;
};

/// Which memory of a rank is in shared buffers, and where it begins there.
struct Sharing {
    TestBuffers* buffers = nullptr;
    bool input = false;
    bool output = false;
    std::size_t offset = 0;  // elements
};

/// Elements in memory of their own, or in a shared buffer, which they leave with garbage.
class PartMemory {
public:
    PartMemory() = default;
    PartMemory(std::size_t count, std::uint32_t rank, const Sharing& sharing, bool shared)
        : rank_(rank) {
        if (!shared || sharing.buffers == nullptr) {
            own_.resize(count);
            elements_ = own_;
            return;
        }
        buffers_ = sharing.buffers;
        made_ = buffers_->make(rank, (sharing.offset + count) * sizeof(std::uint64_t));
        auto* const first = reinterpret_cast<std::uint64_t*>(made_.memory->bytes().data());
        elements_ = {first + sharing.offset, count};
        begin_ = sharing.offset * sizeof(std::uint64_t);
    }
    PartMemory(const PartMemory&) = delete;
    PartMemory& operator=(const PartMemory&) = delete;
    ~PartMemory() {
        if (buffers_ == nullptr) return;
        spoil();
        buffers_->drop(rank_, made_.name);
    }

    std::span<std::uint64_t> elements() const noexcept { return elements_; }
    std::uint64_t name() const noexcept { return made_.name; }  // 0: not shared
    std::uint64_t begin() const noexcept { return begin_; }     // bytes, in the buffer
    /// As a program that uses the memory for something else.
    void spoil() const noexcept {
        std::ranges::fill(elements_, std::uint64_t{0xeeee'eeee'eeee'eeee});
    }

private:
    std::uint32_t rank_ = 0;
    TestBuffers* buffers_ = nullptr;
    TestBuffers::Made made_{};
    std::vector<std::uint64_t> own_;
    std::span<std::uint64_t> elements_;
    std::uint64_t begin_ = 0;
};

}  // namespace nexar::testing
