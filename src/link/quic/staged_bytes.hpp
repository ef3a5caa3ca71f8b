#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <nexar/result.hpp>
#include <span>

#include "base/buffer_pool.hpp"
#include "port/stream.hpp"

namespace nexar::quic {

/// A byte stream in buffers of the pool: appended at the end, released from the front. Offsets
/// count from the beginning of the stream. Bytes keep their place in memory until they are
/// released.
class StagedBytes {
public:
    explicit StagedBytes(BufferPool& pool) noexcept : pool_(&pool) {}

    std::uint64_t begin() const noexcept { return begin_; }
    std::uint64_t end() const noexcept { return end_; }
    std::uint64_t size() const noexcept { return end_ - begin_; }

    /// Copies all of `pieces`, or nothing (Errc::out_of_memory).
    Result<void> append(std::span<const port::ConstBytes> pieces);

    /// Memory for at least one byte after the end; commit() reports how much was filled.
    Result<port::Bytes> room();
    void commit(std::size_t bytes) noexcept;

    /// The contiguous bytes at `offset`, in [begin, end); empty at the end.
    port::ConstBytes at(std::uint64_t offset) const noexcept;

    /// Releases the bytes before `offset`, which is in [begin, end]. Empty buffers return to the
    /// pool, except the last one, which is kept for the next append().
    void release_to(std::uint64_t offset) noexcept;

    /// Returns all buffers to the pool.
    void clear() noexcept;

private:
    struct Chunk {
        PooledBuffer buffer;
        std::uint64_t begin = 0;  // offset of the buffer's first byte
        std::size_t used = 0;
    };

    Result<void> add_chunk(std::size_t wanted);

    BufferPool* pool_;
    std::deque<Chunk> chunks_;
    std::uint64_t begin_ = 0;
    std::uint64_t end_ = 0;
};

}  // namespace nexar::quic
