#include "base/pool_shelf.hpp"

#include "base/assert.hpp"
#include "base/thread_index.hpp"

namespace nexar {

namespace {

// A place points this many bytes into its block. Never 0, which marks an empty place.
constexpr std::size_t tag(SizeClass size_class) {
    return size_class + std::size_t{1};
}

std::size_t tag_of(const std::byte* content) noexcept {
    return reinterpret_cast<std::uintptr_t>(content) % kPoolPage;
}

PoolShelf::Taken decoded(std::byte* content) noexcept {
    const std::size_t tag = tag_of(content);
    return {.block = content - tag, .size_class = static_cast<SizeClass>(tag - 1)};
}

}  // namespace

PoolShelf::PoolShelf(std::size_t places)
    : places_(places), lines_(std::make_unique<Line[]>((places + kPerLine - 1) / kPerLine)) {}

std::size_t PoolShelf::start() const noexcept {
    const std::size_t own = thread_index() * kPerLine;
    return own < places_ ? own : own % places_;
}

template <class Visit>
bool PoolShelf::search(Visit visit) const noexcept {
    if (places_ == 0) return false;
    const std::size_t first = start();
    for (std::size_t i = first; i < places_; ++i) {
        if (visit(at(i))) return true;
    }
    for (std::size_t i = 0; i < first; ++i) {
        if (visit(at(i))) return true;
    }
    return false;
}

bool PoolShelf::put(std::byte* block, SizeClass size_class) noexcept {
    NEXAR_ASSERT(tag_of(block) == 0, "blocks start at a page");
    std::byte* const content = block + tag(size_class);
    return search([content](Place& place) {
        std::byte* seen = place.load(std::memory_order_relaxed);
        return seen == nullptr &&
               place.compare_exchange_strong(seen, content, std::memory_order_release,
                                             std::memory_order_relaxed);
    });
}

std::byte* PoolShelf::take(SizeClass size_class) noexcept {
    const std::size_t wanted = tag(size_class);
    std::byte* seen = nullptr;
    const bool found = search([wanted, &seen](Place& place) {
        seen = place.load(std::memory_order_relaxed);
        return tag_of(seen) == wanted &&
               place.compare_exchange_strong(seen, nullptr, std::memory_order_acquire,
                                             std::memory_order_relaxed);
    });
    return found ? decoded(seen).block : nullptr;
}

PoolShelf::Taken PoolShelf::take_from(std::size_t place) noexcept {
    std::byte* const content = at(place).exchange(nullptr, std::memory_order_acquire);
    return content == nullptr ? Taken{} : decoded(content);
}

std::size_t PoolShelf::bytes() const noexcept {
    std::size_t total = 0;
    for (std::size_t i = 0; i < places_; ++i) {
        std::byte* const content = at(i).load(std::memory_order_relaxed);
        if (content != nullptr) total += class_bytes(decoded(content).size_class);
    }
    return total;
}

}  // namespace nexar
