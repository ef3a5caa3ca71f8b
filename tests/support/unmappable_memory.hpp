#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <nexar/error.hpp>
#include <span>

namespace nexar::testing {

/// Memory whose use after unmap() crashes the process, so that a test detects accesses to memory
/// that has been returned to its owner. Its pages occupy nothing until they are written.
class UnmappableMemory {
public:
    explicit UnmappableMemory(std::size_t bytes)
        : size_(bytes),
          begin_(::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {
        if (begin_ == MAP_FAILED) throw Error(Errc::out_of_memory, "cannot map memory");
        // Without huge pages, the time that an operation takes to write this memory for the first
        // time is mostly that of the kernel. Where they are not available, it only takes longer.
        ::madvise(begin_, bytes, MADV_HUGEPAGE);
    }
    UnmappableMemory(const UnmappableMemory&) = delete;
    UnmappableMemory& operator=(const UnmappableMemory&) = delete;
    ~UnmappableMemory() { ::munmap(begin_, size_); }

    std::span<std::byte> bytes() const noexcept { return {static_cast<std::byte*>(begin_), size_}; }

    /// Makes every access crash. The destructor frees the pages, which may take much longer.
    void unmap() const {
        if (::mprotect(begin_, size_, PROT_NONE) != 0) {
            throw Error(Errc::out_of_memory, "cannot unmap memory");
        }
    }

private:
    std::size_t size_;
    void* begin_;
};

}  // namespace nexar::testing
