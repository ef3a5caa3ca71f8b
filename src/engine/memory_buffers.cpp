#include "engine/memory_buffers.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::engine {

namespace {

std::atomic_ref<std::uint64_t> released_word(port::ConstBytes memory) noexcept {
    // atomic_ref has no form for const words; readers only load.
    auto* const tail = const_cast<std::byte*>(  // NOLINT(cppcoreguidelines-pro-type-const-cast)
        memory.data() + memory.size() - kBufferTail);
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(tail));  // NOLINT
}

}  // namespace

std::uint64_t OwnBuffers::add(std::shared_ptr<port::SharedMemory> memory) {
    NEXAR_ASSERT(memory->bytes().size() > kBufferTail);
    const std::uint64_t name = kBufferNames << 32U | ++last_;
    entries_.push_back({.name = name, .memory = std::move(memory)});
    return name;
}

void OwnBuffers::remove(std::uint64_t name) noexcept {
    const auto found = std::ranges::find(entries_, name, &Entry::name);
    if (found == entries_.end()) return;
    released_word(found->memory->bytes()).store(1, std::memory_order_release);
    entries_.erase(found);
}

const OwnBuffers::Entry* OwnBuffers::find(port::ConstBytes memory) const noexcept {
    for (const Entry& entry : entries_) {
        const port::ConstBytes all = entry.memory->bytes();
        if (memory.data() < all.data() || memory.data() >= all.data() + all.size()) continue;
        const auto offset = static_cast<std::size_t>(memory.data() - all.data());
        const std::size_t usable = all.size() - kBufferTail;
        return offset <= usable && memory.size() <= usable - offset ? &entry : nullptr;
    }
    return nullptr;
}

void PeerBuffers::add(std::uint64_t name, std::shared_ptr<const port::PeerMemory> memory) {
    drop_released();
    const std::size_t bytes = memory->bytes().size();
    if (bytes <= kBufferTail || bytes % kBufferTail != 0) return;
    const auto found = std::ranges::find(in_, name, &Mapped::name);
    if (found != in_.end()) {
        found->memory = std::move(memory);
    } else {
        in_.push_back({.name = name, .memory = std::move(memory)});
    }
}

void PeerBuffers::drop_released() noexcept {
    std::erase_if(in_, [](const Mapped& one) {
        return released_word(one.memory->bytes()).load(std::memory_order_relaxed) != 0;
    });
}

std::shared_ptr<const port::PeerMemory> PeerBuffers::find(std::uint64_t name) const noexcept {
    const auto found = std::ranges::find(in_, name, &Mapped::name);
    return found == in_.end() ? nullptr : found->memory;
}

bool PeerBuffers::knows(std::uint64_t name) const noexcept {
    return std::ranges::find(out_, name) != out_.end();
}

void PeerBuffers::shared(std::uint64_t name) {
    out_.push_back(name);
    ++unproven_;
}

}  // namespace nexar::engine
