#pragma once

#include <cstddef>

namespace nexar {

/// Every block that a pool asks for has a multiple of this size and starts at a multiple of it.
inline constexpr std::size_t kPoolPage = 4096;

struct PoolBlock {
    std::byte* memory = nullptr;  // null when there is none
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

/// Memory of the process. Below kHugePage from the C heap, since a mapping costs more than such a
/// block and a process may have only some 65000 of them. From there on mapped, so that what is
/// released leaves the process at once, and in huge pages where the system has them: that makes the
/// first touch 2.5 to 5 times as quick (docs/decisions/0007-buffer-pool.md).
class SystemMemory final : public PoolMemory {
public:
    static constexpr std::size_t kHugePage = std::size_t{2} << 20;

    PoolBlock allocate(std::size_t bytes) noexcept override;
    void release(std::byte* memory, std::size_t bytes) noexcept override;
};

/// The one that pools use unless told otherwise. Lives as long as the process.
PoolMemory& system_memory() noexcept;

}  // namespace nexar
