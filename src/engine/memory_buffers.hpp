#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "port/shared_memory.hpp"

namespace nexar::engine {

/// Shared buffers: memory of the user that peers on the same host can read in place.
///
/// The owner names each of its buffers and shares it with a peer before the first collective in
/// which that peer may read it. The last line of the memory belongs to nexar: its first word is not
/// zero once the owner has released the buffer, so that peers can drop their mappings.
constexpr std::size_t kBufferTail = 64;

/// Names of buffers, which differ from the names of segments (ids of communicators).
constexpr std::uint64_t kBufferNames = 0x6e78'6275;
constexpr bool names_buffer(std::uint64_t name) noexcept {
    return name >> 32U == kBufferNames;
}

/// The bytes to allocate for a buffer of this many bytes, its tail included.
constexpr std::size_t whole_buffer(std::size_t bytes) noexcept {
    return (bytes + kBufferTail - 1) / kBufferTail * kBufferTail + kBufferTail;
}

/// The shared buffers of this node.
class OwnBuffers {
public:
    struct Entry {
        std::uint64_t name = 0;
        std::shared_ptr<port::SharedMemory> memory{};
    };

    bool empty() const noexcept { return entries_.empty(); }
    /// `memory` has whole_buffer() bytes. Returns the name of the buffer.
    std::uint64_t add(std::shared_ptr<port::SharedMemory> memory);
    /// Tells the peers that they may drop the buffer.
    void remove(std::uint64_t name) noexcept;
    /// The buffer that contains this memory; nullptr: none.
    const Entry* find(port::ConstBytes memory) const noexcept;

private:
    std::vector<Entry> entries_;
    std::uint32_t last_ = 0;
};

/// The shared buffers of a peer that this node has mapped, and those of this node that the peer
/// knows.
class PeerBuffers {
public:
    /// Buffers that the peer knows, and those of them that it may not have seen yet. Beyond these
    /// limits this node copies instead, so that the link always allows the segments of further
    /// communicators, and the peer never has more mappings than its link allows.
    static constexpr std::size_t kMostKnown = 48;
    static constexpr std::size_t kMostUnproven = 32;

    /// Also drops the buffers that the peer has released. Ignores memory that has no room for the
    /// tail.
    void add(std::uint64_t name, std::shared_ptr<const port::PeerMemory> memory);
    void drop_released() noexcept;
    std::shared_ptr<const port::PeerMemory> find(std::uint64_t name) const noexcept;
    std::size_t size() const noexcept { return in_.size(); }

    bool knows(std::uint64_t name) const noexcept;
    bool may_share() const noexcept {
        return out_.size() < kMostKnown && unproven_ < kMostUnproven;
    }
    void shared(std::uint64_t name);
    /// The peer has read a buffer in place, so it has seen everything that was shared before.
    void prove() noexcept { unproven_ = 0; }
    void forget(std::uint64_t name) noexcept { std::erase(out_, name); }

    void clear() noexcept {
        in_.clear();
        out_.clear();
    }

private:
    struct Mapped {
        std::uint64_t name = 0;
        std::shared_ptr<const port::PeerMemory> memory{};
    };
    std::vector<Mapped> in_;
    std::vector<std::uint64_t> out_;
    std::size_t unproven_ = 0;
};

/// How an operation finds the buffers that other ranks name.
class BufferFinder {
public:
    virtual ~BufferFinder() = default;
    /// nullptr: the rank has not shared it, or it has not arrived yet.
    virtual std::shared_ptr<const port::PeerMemory> find(std::uint32_t rank,
                                                         std::uint64_t name) const = 0;
};

}  // namespace nexar::engine
