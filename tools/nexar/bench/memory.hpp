#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <nexar/buffer.hpp>

namespace nexar::bench {

/// Page-aligned elements, so that results do not depend on where the allocator placed the memory.
class Memory {
public:
    Memory() = default;
    Memory(std::uint64_t count, DType dtype) : count_(count), dtype_(dtype) {
        const std::size_t bytes = count * size_of(dtype);
        if (bytes == 0) return;
        constexpr std::size_t kPage = 4096;
        start_.reset(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage));
        if (!start_) throw std::bad_alloc();
    }

    Buffer buffer() const noexcept {
        return {.data = start_.get(), .count = count_, .dtype = dtype_};
    }

private:
    struct Free {
        void operator()(void* start) const noexcept {
            std::free(start);  // NOLINT(cppcoreguidelines-no-malloc): from aligned_alloc
        }
    };

    std::unique_ptr<void, Free> start_{};
    std::uint64_t count_ = 0;
    DType dtype_ = DType::u8;
};

}  // namespace nexar::bench
