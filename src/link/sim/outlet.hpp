#pragma once

#include <xxhash.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "link/common/write_order.hpp"
#include "link/sim/byte_queue.hpp"
#include "port/link.hpp"

namespace nexar::sim {

/// The sending half of a lane or of a payload stream: which bytes come next, what the peer's window
/// allows, and what it has acknowledged.
///
/// The memory of a source with regions is read when it is sent and again when it is released, as a
/// retransmission would read it: check_source().
class Outlet {
public:
    explicit Outlet(port::Lane lane) noexcept : lane_(true), class_(link::write_class(lane)) {}
    Outlet(port::StreamId id, port::Source& source, const port::StreamOptions& options, bool check);

    bool is_lane() const noexcept { return lane_; }
    port::StreamId id() const noexcept { return id_; }
    link::WriteClass write_class() const noexcept { return class_; }

    /// Unacknowledged bytes of a lane to which `written` bytes were written so far.
    std::uint64_t held(std::uint64_t written) const noexcept { return written - acknowledged_; }

    /// How many bytes may be sent now if the source has them. `written` is the number of bytes
    /// written to a lane.
    std::uint64_t sendable(std::uint64_t written) const noexcept;
    bool end_due() const noexcept { return !is_lane() && !end_sent_ && sent_ == size_; }
    bool ready(std::uint64_t written) const noexcept {
        return !outcome && (end_due() || (!source_pending && sendable(written) != 0));
    }

    /// Moves up to `n` bytes of the source to `onto`, where the bytes of a lane are already, and
    /// returns how many; 0 when the source has none yet.
    std::size_t send(std::size_t n, ByteQueue& onto);
    void send_end() noexcept { end_sent_ = true; }
    bool end_sent() const noexcept { return end_sent_; }

    std::uint64_t sent() const noexcept { return sent_; }
    std::uint64_t acknowledged() const noexcept { return acknowledged_; }

    /// The peer's link has everything before `offset` and accepts everything before `limit`.
    void acknowledge(std::uint64_t offset, std::uint64_t limit) noexcept;
    void set_limit(std::uint64_t limit) noexcept { limit_ = limit; }

    /// Asserts that the bytes sent are unchanged in memory.
    void check_source() const;
    /// Returns the source to its owner; sending from it afterwards fails an assertion.
    void forget_source() noexcept;

    // The link's state for this half.
    bool opened = false;
    bool queued = false;  // in one of the writer's queues
    bool source_pending = false;
    std::optional<port::SendOutcome> outcome{};  // decided, but not reported yet
    bool settled = false;                        // reported

private:
    struct HashFree {
        void operator()(XXH3_state_t* state) const noexcept { XXH3_freeState(state); }
    };
    using Hash = std::unique_ptr<XXH3_state_t, HashFree>;

    std::size_t send_prefix(std::size_t n, ByteQueue& onto);
    std::size_t send_regions(std::size_t n, ByteQueue& onto);
    std::size_t send_asked(std::size_t n, ByteQueue& onto);

    bool lane_ = false;
    port::Source* source_ = nullptr;
    port::StreamId id_{};
    link::WriteClass class_;
    std::array<std::byte, port::kMaxPrefixBytes> prefix_{};
    std::size_t prefix_bytes_ = 0;
    std::span<const port::ConstBytes> regions_{};
    std::size_t region_ = 0;  // the region with the next byte, and the byte's position in it
    std::size_t in_region_ = 0;
    std::uint64_t size_ = 0;  // prefix and content; unused in a lane
    std::uint64_t sent_ = 0;
    std::uint64_t acknowledged_ = 0;
    std::uint64_t limit_ = 0;
    bool end_sent_ = false;
    Hash hash_{};  // of the bytes read from regions; null: not checked
};

}  // namespace nexar::sim
