#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <nexar/buffer.hpp>
#include <nexar/node.hpp>

namespace nexar::bench {

/// Page-aligned elements, so that results do not depend on where the allocator placed the memory.
/// In a shared buffer if a node is given.
class Memory {
public:
    Memory() = default;
    Memory(std::uint64_t count, DType dtype, const Node* node = nullptr)
        : count_(count), dtype_(dtype) {
        const std::size_t bytes = count * size_of(dtype);
        if (bytes == 0) return;
        if (node != nullptr) {
            shared_ = std::make_shared<SharedBuffer<std::byte>>(node->allocate<std::byte>(bytes));
            return;
        }
        constexpr std::size_t kPage = 4096;
        start_.reset(std::aligned_alloc(kPage, (bytes + kPage - 1) / kPage * kPage));
        if (!start_) throw std::bad_alloc();
    }

    Buffer buffer() const noexcept {
        void* const data = shared_ ? shared_->data() : start_.get();
        return {.data = data, .count = count_, .dtype = dtype_};
    }

private:
    struct Free {
        void operator()(void* start) const noexcept {
            std::free(start);  // NOLINT(cppcoreguidelines-no-malloc): from aligned_alloc
        }
    };

    std::unique_ptr<void, Free> start_{};
    std::shared_ptr<SharedBuffer<std::byte>> shared_{};
    std::uint64_t count_ = 0;
    DType dtype_ = DType::u8;
};

}  // namespace nexar::bench
