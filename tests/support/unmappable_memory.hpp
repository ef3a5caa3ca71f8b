#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <nexar/error.hpp>
#include <span>

namespace nexar::testing {

/// Memory whose use ends the process after unmap(): so that a test sees whoever touches memory that
/// is its owner's again. Its pages take no room until they are written.
class UnmappableMemory {
public:
    explicit UnmappableMemory(std::size_t bytes)
        : size_(bytes),
          begin_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (begin_ == MAP_FAILED) throw Error(Errc::out_of_memory, "no memory to map");
    }
    UnmappableMemory(const UnmappableMemory&) = delete;
    UnmappableMemory& operator=(const UnmappableMemory&) = delete;
    ~UnmappableMemory() { ::munmap(begin_, size_); }

    std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(begin_), size_}; }

    /// Gives the pages back, but not the addresses: nobody else gets them.
    void unmap() const {
        if (::mmap(begin_, size_, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED) {
            throw Error(Errc::out_of_memory, "memory could not be unmapped");
        }
    }

private:
    std::size_t size_;
    void* begin_;
};

}  // namespace nexar::testing
