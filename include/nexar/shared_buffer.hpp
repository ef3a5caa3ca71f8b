#pragma once

#include <cstddef>
#include <memory>
#include <nexar/dtype.hpp>
#include <nexar/export.hpp>
#include <utility>

namespace nexar {

namespace detail {

class NodeBody;

/// The memory of a SharedBuffer.
class NEXAR_EXPORT SharedRoom {
public:
    SharedRoom() noexcept;
    /// Throws Error.
    SharedRoom(const std::shared_ptr<NodeBody>& node, std::size_t count, std::size_t element);
    SharedRoom(SharedRoom&&) noexcept;
    SharedRoom& operator=(SharedRoom&&) noexcept;
    ~SharedRoom();

    void* data() const noexcept { return data_; }
    bool shared() const noexcept;

private:
    struct Body;
    std::unique_ptr<Body> body_;
    void* data_ = nullptr;
};

}  // namespace detail

/// Elements in memory that other ranks of this host can read in place, made by Node::allocate().
///
/// A contiguous range: every operation takes it like a vector, as a whole or through a span.
/// Collectives on it, and on parts of it, do not copy it into memory that the ranks share first.
/// That pays off from about 64 KiB on, most of all for an all_reduce in which the inputs and the
/// outputs of all ranks are in such buffers; but each rank may use any kind of memory in any call.
///
/// Like a vector's, its memory must stay valid until the Works that use it have completed. It may
/// outlive its node. A forked child sees the memory of its parent, not a copy: it must not write
/// to it.
template <class T>
class SharedBuffer {
    static_assert(Element<T>,
                  "nexar: an element must be trivially copyable and must not refer to memory, as "
                  "pointers and views do");

public:
    using value_type = T;
    using iterator = T*;
    using const_iterator = const T*;

    SharedBuffer() noexcept = default;
    SharedBuffer(const std::shared_ptr<detail::NodeBody>& node, std::size_t count)
        : room_(node, count, sizeof(T)), size_(count) {}
    SharedBuffer(SharedBuffer&& other) noexcept
        : room_(std::move(other.room_)), size_(std::exchange(other.size_, 0)) {}
    SharedBuffer& operator=(SharedBuffer&& other) noexcept {
        room_ = std::move(other.room_);
        size_ = std::exchange(other.size_, 0);
        return *this;
    }
    ~SharedBuffer() = default;

    T* data() noexcept { return static_cast<T*>(room_.data()); }
    const T* data() const noexcept { return static_cast<const T*>(room_.data()); }
    std::size_t size() const noexcept { return size_; }
    bool empty() const noexcept { return size_ == 0; }

    T* begin() noexcept { return data(); }
    T* end() noexcept { return data() + size_; }
    const T* begin() const noexcept { return data(); }
    const T* end() const noexcept { return data() + size_; }
    T& operator[](std::size_t i) noexcept { return data()[i]; }
    const T& operator[](std::size_t i) const noexcept { return data()[i]; }

    /// False for ordinary memory, which allocate() gives where the node has no shared memory with
    /// other ranks.
    bool shared() const noexcept { return room_.shared(); }

private:
    detail::SharedRoom room_;
    std::size_t size_ = 0;
};

}  // namespace nexar
