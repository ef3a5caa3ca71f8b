#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <utility>

#include "base/descriptor.hpp"
#include "link/shm/layout.hpp"
#include "port/stream.hpp"

/// Anonymous memory that one process writes and others read: memfds, without a name in any file
/// system, sealed so that nobody can change their size and only the owner can write them.
namespace nexar::shm {

/// Owns a range of addresses; unmaps it on destruction.
class Mapping {
public:
    Mapping() noexcept = default;
    Mapping(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}
    Mapping(Mapping&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        return *this;
    }
    ~Mapping();

    std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }

private:
    std::byte* data_ = nullptr;
    std::size_t size_ = 0;
};

std::size_t page_bytes() noexcept;
/// `bytes` rounded up to whole pages.
std::size_t whole_pages(std::size_t bytes) noexcept;

/// A memfd of `bytes` zeros, not sealed yet.
Result<Descriptor> make_memory(std::size_t bytes);
/// Seals it: from now on no new mapping can write it, and its size is fixed. Mappings that exist
/// stay writable.
Result<void> seal(int memory);
/// Checks that `memory` is sealed anonymous memory of exactly `bytes`: reading it cannot fault, and
/// no process can change that.
Result<void> check_sealed(int memory, std::uint64_t bytes);
/// Maps all of a memfd.
Result<Mapping> map_memory(int memory, std::size_t bytes, bool writable);

/// True for a size that a ring may have: a power of two from 64 KiB to 64 MiB, in whole pages.
bool valid_ring_size(std::uint64_t bytes) noexcept;

/// The memory of one side of a link as one of the two processes maps it. The ring is mapped twice
/// in a row, so that a record never wraps.
class RingMemory {
public:
    RingMemory() noexcept = default;
    /// New memory of this process, writable here, and the descriptor for the peer.
    static Result<RingMemory> make(std::size_t ring_bytes);
    /// The memory of the peer, after its seals and its size were checked. For reading only.
    static Result<RingMemory> map_peer(const Descriptor& memory, std::uint64_t ring_bytes);

    Control& control() const noexcept { return *reinterpret_cast<Control*>(mapping_.data()); }
    std::byte* ring() const noexcept { return mapping_.data() + page_bytes(); }
    std::size_t ring_bytes() const noexcept { return ring_bytes_; }
    /// Only of own memory.
    int descriptor() const noexcept { return memory_.number(); }
    /// The peer has its own descriptor from now on.
    void close_descriptor() noexcept { memory_ = Descriptor(); }
    explicit operator bool() const noexcept { return mapping_.data() != nullptr; }

private:
    static Result<RingMemory> map(int memory, std::size_t ring_bytes, bool writable);

    Mapping mapping_;
    std::size_t ring_bytes_ = 0;
    Descriptor memory_;
};

}  // namespace nexar::shm
