#pragma once

#include <cstddef>

namespace nexar {

/// The size and alignment of every block that a pool requests are multiples of this.
inline constexpr std::size_t kPoolPage = 4096;

struct PoolBlock {
    std::byte* memory = nullptr;  // null if the allocation failed
    bool zeroed = false;          // all bytes are known to be 0
};

/// Where a BufferPool gets its blocks: the system, or memory that a device can reach. Any thread
/// may call; it must outlive the pools that use it.
class PoolMemory {
public:
    virtual ~PoolMemory() = default;

    virtual PoolBlock allocate(std::size_t bytes) noexcept = 0;

    /// `memory` came from allocate(bytes), with the same number of bytes.
    virtual void release(std::byte* memory, std::size_t bytes) noexcept = 0;
};

/// Memory of the process. Blocks below kHugePage come from the C heap: a mapping would cost more
/// than such a block, and a process may have only about 65000 mappings. Larger blocks are mapped,
/// so that released memory returns to the system at once, and use huge pages if available, which
/// makes the first touch 2.5 to 5 times as fast (docs/decisions/0007-buffer-pool.md).
class SystemMemory final : public PoolMemory {
public:
    static constexpr std::size_t kHugePage = std::size_t{2} << 20;

    PoolBlock allocate(std::size_t bytes) noexcept override;
    void release(std::byte* memory, std::size_t bytes) noexcept override;
};

/// The default for pools. Lives as long as the process.
PoolMemory& system_memory() noexcept;

}  // namespace nexar
