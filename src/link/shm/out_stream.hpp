#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "link/common/write_order.hpp"
#include "link/shm/byte_queue.hpp"
#include "port/link.hpp"

namespace nexar::shm {

/// The sending half of a lane: what waits for room in the ring or in the peer's window.
struct OutLane {
    ByteQueue queue{};
    std::uint64_t sent = 0;   // bytes in records
    std::uint64_t limit = 0;  // that the peer accepts
    bool full = false;        // a write was refused; Writable is due

    std::uint64_t window() const noexcept { return limit - sent; }
};

/// The sending half of a payload stream: which bytes come next. They are copied from the source
/// straight into the ring.
class OutStream {
public:
    OutStream(port::StreamId id, port::Source& source, const port::StreamOptions& options,
              std::uint64_t first_window);

    port::StreamId id() const noexcept { return id_; }
    link::WriteClass write_class() const noexcept { return class_; }

    /// True if there is something to write: bytes, or the end of the stream. Sets source_pending if
    /// the source has no more bytes yet.
    bool ready() noexcept;
    /// Bytes that may be written next; valid after ready() returned true.
    std::uint64_t sendable() const noexcept;
    /// Copies up to `most` of them; fewer, or none, if the source has no more yet.
    std::size_t copy_to(std::byte* place, std::size_t most) noexcept;
    /// True if all bytes were copied.
    bool complete() const noexcept { return sent_ == size_; }

    std::uint64_t sent() const noexcept { return sent_; }
    void accept_up_to(std::uint64_t limit) noexcept {
        if (limit > limit_) limit_ = limit;
    }

    // The link's state for this stream.
    std::optional<std::uint64_t> number{};  // set with its first record
    bool active = false;                    // counts against the peer's limit
    bool queued = false;                    // in one of the writer's queues
    bool source_pending = false;
    bool end_written = false;
    bool cancelled = false;

private:
    port::Source* source_;
    port::StreamId id_;
    link::WriteClass class_;
    std::array<std::byte, port::kMaxPrefixBytes> prefix_{};
    std::size_t prefix_bytes_ = 0;
    std::span<const port::ConstBytes> regions_{};
    std::size_t region_ = 0;  // the region with the next byte, and the byte's position in it
    std::size_t in_region_ = 0;
    std::uint64_t size_ = 0;      // prefix and content
    std::uint64_t readable_ = 0;  // prefix and the part of the content that the source has
    std::uint64_t sent_ = 0;
    std::uint64_t limit_ = 0;  // that the peer accepts
};

}  // namespace nexar::shm
