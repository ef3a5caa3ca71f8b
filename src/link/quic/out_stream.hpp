#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "link/common/write_order.hpp"
#include "link/quic/staged_bytes.hpp"
#include "port/link.hpp"
#include "port/stream.hpp"

namespace nexar::quic {

/// The sending half of a lane or of a payload stream: which bytes come next, and which must be kept
/// because the peer has not acknowledged them.
///
/// A lane's bytes are staged. Those of a payload stream are referenced if the source has regions;
/// otherwise a bounded amount at a time is staged with fill().
class OutStream {
public:
    /// Staged, unacknowledged bytes of one source without regions.
    static constexpr std::size_t kMaxStagedBytes = std::size_t{1024} * 1024;

    OutStream(port::Lane lane, BufferPool& pool);
    OutStream(port::StreamId id, port::Source& source, const port::StreamOptions& options,
              BufferPool& pool);

    bool is_lane() const noexcept { return source_ == nullptr; }
    port::StreamId id() const noexcept { return id_; }
    link::WriteClass write_class() const noexcept { return class_; }

    /// Appends to a lane.
    Result<void> append(std::span<const port::ConstBytes> pieces) { return staged_.append(pieces); }
    std::uint64_t queued_bytes() const noexcept { return staged_.size(); }
    /// Ends a lane after the appended bytes; nothing can be appended afterwards.
    void end() noexcept { ending_ = true; }
    bool ending() const noexcept { return ending_; }

    /// True if there is something to write: bytes, or the end of the stream. Asks the source if
    /// necessary; sets source_pending if it has no more yet.
    bool ready();

    /// How many bytes could be written now.
    std::uint64_t waiting_bytes() const noexcept {
        if (!staging_)
            return prefix_bytes_ + readable_ - std::min(next_, prefix_bytes_ + readable_);
        return prefix_bytes_ + staged_.end() - next_;
    }

    /// Points `out` to the next bytes, at most `limit`; returns how many entries it used.
    std::size_t gather(std::span<port::ConstBytes> out, std::size_t limit) const noexcept;

    /// True if the stream ends after `bytes` more bytes.
    bool ends_after(std::size_t bytes) const noexcept {
        if (is_lane()) return ending_ && next_ + bytes == staged_.end();
        return next_ + bytes == size_;
    }

    /// Notes that `bytes` of those from gather() were written, and the end if `with_end`.
    void wrote(std::size_t bytes, bool with_end) noexcept {
        next_ += bytes;
        end_written_ = end_written_ || with_end;
    }

    /// The peer has everything before `offset`.
    void acknowledged(std::uint64_t offset) noexcept;

    /// Removes and returns the bytes of a lane that the peer has not acknowledged. Ends its use.
    std::vector<std::byte> take_unacknowledged();
    std::uint64_t acknowledged() const noexcept { return acknowledged_; }

    bool all_acknowledged() const noexcept { return acknowledged_ == next_; }
    bool end_written() const noexcept { return end_written_; }
    std::uint64_t written() const noexcept { return next_; }

    // The connection's state for this stream.
    std::int64_t quic_id = -1;   // -1: not opened yet
    bool queued = false;         // in one of the writer's queues
    bool window_spent = false;   // the peer's window for this stream is used up
    std::uint64_t credited = 0;  // bytes written when the peer last gave credit
    bool source_pending = false;
    bool dropped = false;                        // with its link: the source is not used any more
    std::optional<port::SendOutcome> outcome{};  // decided, but not reported yet
    TimePoint progress_at{};                     // when the peer last acknowledged some of it
    std::size_t losses_before = 0;               // packets lost before the last progress
    TimePoint progress_seen{};

private:
    void stage();
    bool readable();

    port::Source* source_ = nullptr;
    port::StreamId id_{};
    link::WriteClass class_;
    std::array<std::byte, port::kMaxPrefixBytes> prefix_{};
    std::size_t prefix_bytes_ = 0;
    std::span<const port::ConstBytes> regions_{};
    std::uint64_t size_ = 0;      // prefix and content; unused in a lane
    std::uint64_t readable_ = 0;  // the last ready() of the source
    bool staging_ = false;
    StagedBytes staged_;
    std::uint64_t next_ = 0;
    std::uint64_t acknowledged_ = 0;
    bool ending_ = false;  // of a lane
    bool end_written_ = false;
    // `next_` only moves forward, so the search for its region starts at the previous one.
    mutable std::size_t region_ = 0;
    mutable std::uint64_t region_begin_ = 0;
};

}  // namespace nexar::quic
