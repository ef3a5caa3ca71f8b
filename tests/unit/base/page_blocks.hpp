#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/pool_memory.hpp"

namespace nexar {

/// One-page blocks for a PoolShelf, which never accesses their content: only the addresses matter.
class PageBlocks {
public:
    explicit PageBlocks(std::size_t count) : memory_((count + 1) * kPoolPage) {
        const auto start = reinterpret_cast<std::uintptr_t>(memory_.data());
        first_ = memory_.data() + (kPoolPage - start % kPoolPage) % kPoolPage;
    }

    std::byte* operator[](std::size_t i) const { return first_ + i * kPoolPage; }

    std::size_t index_of(const std::byte* block) const {
        return static_cast<std::size_t>(block - first_) / kPoolPage;
    }

private:
    std::vector<std::byte> memory_;
    std::byte* first_;
};

}  // namespace nexar
