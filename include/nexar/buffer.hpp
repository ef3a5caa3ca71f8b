#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/dtype.hpp>
#include <span>
#include <type_traits>

namespace nexar {

/// Where memory is.
enum class MemorySpace : std::uint8_t { host };

/// Elements whose type is known only at run time: the untyped form of a span, for bindings and
/// devices. Refers to memory, does not own it.
struct Buffer {
    void* data = nullptr;
    std::size_t count = 0;
    DType dtype = DType::u8;
    MemorySpace space = MemorySpace::host;

    std::size_t bytes() const noexcept { return count * size_of(dtype); }
};

/// The same for memory that is only read.
struct ConstBuffer {
    const void* data = nullptr;
    std::size_t count = 0;
    DType dtype = DType::u8;
    MemorySpace space = MemorySpace::host;

    ConstBuffer() = default;
    ConstBuffer(const void* at, std::size_t elements, DType type) noexcept
        : data(at), count(elements), dtype(type) {}
    // NOLINTNEXTLINE(google-explicit-constructor): what may be written may be read
    ConstBuffer(const Buffer& buffer) noexcept
        : data(buffer.data), count(buffer.count), dtype(buffer.dtype), space(buffer.space) {}

    std::size_t bytes() const noexcept { return count * size_of(dtype); }
};

template <Element T, std::size_t N>
    requires(!std::is_const_v<T>)
Buffer buffer(std::span<T, N> elements) noexcept {
    return {.data = elements.data(), .count = elements.size(), .dtype = dtype_of<T>};
}

template <Element T, std::size_t N>
ConstBuffer const_buffer(std::span<T, N> elements) noexcept {
    return {elements.data(), elements.size(), dtype_of<T>};
}

/// A piece of memory in a list of them.
using Region = std::span<std::byte>;
using ConstRegion = std::span<const std::byte>;

}  // namespace nexar
