#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/dtype.hpp>
#include <nexar/range.hpp>
#include <span>
#include <utility>
#include <vector>

namespace nexar {

/// The kind of memory that a buffer is in.
enum class MemorySpace : std::uint8_t { host };

/// Elements whose type is known only at run time: the untyped form of a range, for bindings and
/// devices. Does not own the memory.
struct Buffer {
    void* data = nullptr;
    std::size_t count = 0;
    DType dtype = DType::u8;
    MemorySpace space = MemorySpace::host;
    /// Size of one element in bytes if dtype is DType::opaque; ignored for other types.
    std::size_t opaque_size = 0;

    std::size_t element_size() const noexcept {
        return dtype == DType::opaque ? opaque_size : size_of(dtype);
    }
    std::size_t bytes() const noexcept { return count * element_size(); }
};

/// A Buffer whose memory is only read.
struct ConstBuffer {
    const void* data = nullptr;
    std::size_t count = 0;
    DType dtype = DType::u8;
    MemorySpace space = MemorySpace::host;
    std::size_t opaque_size = 0;

    ConstBuffer() = default;
    ConstBuffer(const void* at, std::size_t elements, DType type,
                std::size_t opaque_bytes = 0) noexcept
        : data(at), count(elements), dtype(type), opaque_size(opaque_bytes) {}
    // NOLINTNEXTLINE(google-explicit-constructor): writable memory is also readable
    ConstBuffer(const Buffer& buffer) noexcept
        : data(buffer.data),
          count(buffer.count),
          dtype(buffer.dtype),
          space(buffer.space),
          opaque_size(buffer.opaque_size) {}

    std::size_t element_size() const noexcept {
        return dtype == DType::opaque ? opaque_size : size_of(dtype);
    }
    std::size_t bytes() const noexcept { return count * element_size(); }
};

namespace detail {

template <>
inline constexpr bool is_buffer<Buffer> = true;
template <>
inline constexpr bool is_buffer<ConstBuffer> = true;
template <class T>
    requires is_buffer<T>
inline constexpr bool is_reference_to_memory<T> = true;

template <Element T>
Buffer buffer_at(T* data, std::size_t count) noexcept {
    return {.data = data, .count = count, .dtype = dtype_of<T>, .opaque_size = sizeof(T)};
}
template <Element T>
ConstBuffer const_buffer_at(const T* data, std::size_t count) noexcept {
    return {data, count, dtype_of<T>, sizeof(T)};
}

}  // namespace detail

/// The elements of a contiguous range, for writing.
template <detail::AnyRange R>
Buffer buffer(R&& elements) noexcept {
    if constexpr (detail::check_output<R>()) {
        return detail::buffer_at(std::ranges::data(elements), std::ranges::size(elements));
    } else {
        return {};
    }
}

/// The elements of a contiguous range, for reading.
template <detail::AnyRange R>
ConstBuffer const_buffer(R&& elements) noexcept {
    if constexpr (detail::check_input<R>()) {
        return detail::const_buffer_at(std::ranges::data(elements), std::ranges::size(elements));
    } else {
        return {};
    }
}

/// One piece of memory in a list for send_iov() or recv_iov().
using Region = std::span<std::byte>;
using ConstRegion = std::span<const std::byte>;

/// Lists `count` blocks of `block` elements. The first block starts at `base`, each further one
/// `stride` elements after the previous. A column of a matrix is strided(&matrix[column], rows, 1,
/// columns).
template <Element T>
    requires(!std::is_const_v<T>)
std::vector<Region> strided(T* base, std::size_t count, std::size_t block, std::size_t stride) {
    std::vector<Region> regions;
    regions.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        regions.push_back(std::as_writable_bytes(std::span(base + i * stride, block)));
    }
    return regions;
}
template <Element T>
std::vector<ConstRegion> strided(const T* base, std::size_t count, std::size_t block,
                                 std::size_t stride) {
    std::vector<ConstRegion> regions;
    regions.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        regions.push_back(std::as_bytes(std::span(base + i * stride, block)));
    }
    return regions;
}

}  // namespace nexar
