#include "support/allocations.hpp"

#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::size_t> allocations{0};
std::atomic<std::size_t> allocated_bytes{0};
std::atomic<std::size_t> bytes_in_use{0};

void* in_use(void* memory) noexcept {
    if (memory != nullptr) {
        bytes_in_use.fetch_add(::malloc_usable_size(memory), std::memory_order_relaxed);
    }
    return memory;
}

void release(void* memory) noexcept {
    if (memory == nullptr) return;
    bytes_in_use.fetch_sub(::malloc_usable_size(memory), std::memory_order_relaxed);
    std::free(memory);
}

void* counted(std::size_t size) noexcept {
    allocations.fetch_add(1, std::memory_order_relaxed);
    allocated_bytes.fetch_add(size, std::memory_order_relaxed);
    return in_use(std::malloc(std::max<std::size_t>(size, 1)));
}

void* counted(std::size_t size, std::align_val_t alignment) noexcept {
    allocations.fetch_add(1, std::memory_order_relaxed);
    allocated_bytes.fetch_add(size, std::memory_order_relaxed);
    // aligned_alloc() wants a multiple of the alignment.
    const auto unit = std::max(static_cast<std::size_t>(alignment), sizeof(void*));
    return in_use(std::aligned_alloc(unit, std::max(unit, (size + unit - 1) / unit * unit)));
}

void* or_throw(void* memory) {
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

void* operator new(std::size_t size) {
    return or_throw(counted(size));
}
void* operator new[](std::size_t size) {
    return or_throw(counted(size));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return or_throw(counted(size, alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
    return or_throw(counted(size, alignment));
}
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
    return counted(size);
}
void* operator new[](std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
    return counted(size);
}
void* operator new(std::size_t size, std::align_val_t alignment,
                   const std::nothrow_t& /*tag*/) noexcept {
    return counted(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment,
                     const std::nothrow_t& /*tag*/) noexcept {
    return counted(size, alignment);
}
void operator delete(void* memory) noexcept {
    release(memory);
}
void operator delete[](void* memory) noexcept {
    release(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::size_t /*size*/) noexcept {
    release(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept {
    release(memory);
}
void operator delete(void* memory, std::size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::size_t /*size*/,
                       std::align_val_t /*alignment*/) noexcept {
    release(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
    release(memory);
}
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept {
    release(memory);
}
void operator delete(void* memory, std::align_val_t /*alignment*/,
                     const std::nothrow_t& /*tag*/) noexcept {
    release(memory);
}
void operator delete[](void* memory, std::align_val_t /*alignment*/,
                       const std::nothrow_t& /*tag*/) noexcept {
    release(memory);
}

namespace nexar::testing {

Allocations::Allocations() noexcept
    : count_before_(allocations.load(std::memory_order_relaxed)),
      bytes_before_(allocated_bytes.load(std::memory_order_relaxed)) {}

std::size_t Allocations::count() const noexcept {
    return allocations.load(std::memory_order_relaxed) - count_before_;
}

std::size_t Allocations::in_use() noexcept {
    return bytes_in_use.load(std::memory_order_relaxed);
}

std::size_t Allocations::bytes() const noexcept {
    return allocated_bytes.load(std::memory_order_relaxed) - bytes_before_;
}

}  // namespace nexar::testing
