#include "base/pool_memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

#include "base/assert.hpp"

namespace nexar {

namespace {

void unmap(std::byte* memory, std::size_t bytes) noexcept {
    if (bytes == 0 || munmap(memory, bytes) == 0) return;
    // Unmapping part of a mapping splits it, which fails if the process has reached its limit of
    // mappings. The memory itself can still be released; only the addresses remain reserved.
    madvise(memory, bytes, MADV_DONTNEED);
}

// Huge pages must be aligned to kHugePage, which kernels before 6.7 do not ensure. Therefore maps
// one huge page too many and trims both ends.
std::byte* map_huge(std::size_t bytes) noexcept {
    constexpr std::size_t kAlign = SystemMemory::kHugePage;
    const std::size_t mapped = bytes + kAlign;
    void* const start =
        mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED) return nullptr;
    auto* const first = static_cast<std::byte*>(start);
    const std::size_t head = (kAlign - reinterpret_cast<std::uintptr_t>(start) % kAlign) % kAlign;
    unmap(first, head);
    unmap(first + head + bytes, mapped - head - bytes);
    madvise(first + head, bytes, MADV_HUGEPAGE);  // a hint: works without huge pages, too
    return first + head;
}

}  // namespace

PoolBlock SystemMemory::allocate(std::size_t bytes) noexcept {
    NEXAR_ASSERT(bytes != 0 && bytes % kPoolPage == 0, "blocks are whole pages");
    if (bytes >= kHugePage) return {.memory = map_huge(bytes), .zeroed = true};
    return {.memory = static_cast<std::byte*>(std::aligned_alloc(kPoolPage, bytes)),
            .zeroed = false};
}

void SystemMemory::release(std::byte* memory, std::size_t bytes) noexcept {
    if (bytes >= kHugePage) {
        unmap(memory, bytes);
    } else {
        std::free(memory);
    }
}

PoolMemory& system_memory() noexcept {
    static SystemMemory memory;
    return memory;
}

}  // namespace nexar
