#pragma once

#include <cstddef>
#include <cstdint>

#include "link/shm/byte_queue.hpp"
#include "port/stream.hpp"

namespace nexar::shm {

/// The receiving half of a lane or of a payload stream: passes bytes to its sink straight from the
/// ring, and parks what the sink does not take yet.
class Inlet {
public:
    bool has_sink() const noexcept { return sink_ != nullptr; }
    void attach(port::Sink& sink) noexcept { sink_ = &sink; }
    /// May be called by the sink itself.
    void detach() noexcept { sink_ = nullptr; }
    /// The sink may have room again.
    void wake() noexcept { pending_ = false; }

    /// Takes the bytes that follow those that arrived before.
    void arrive(port::ConstBytes bytes);
    /// Offers the parked bytes again.
    void retry();

    std::uint64_t arrived() const noexcept { return arrived_; }
    std::uint64_t taken() const noexcept { return arrived_ - parked_.size(); }
    port::ConstBytes parked() const noexcept { return parked_.view(); }
    void drop_parked() noexcept { parked_.clear(); }

private:
    // Returns how many bytes the sink took.
    std::size_t offer(port::ConstBytes bytes) noexcept;

    port::Sink* sink_ = nullptr;
    bool pending_ = false;
    ByteQueue parked_;
    std::uint64_t arrived_ = 0;
};

struct InLane : Inlet {
    std::uint64_t limit = 0;  // that the peer knows of
};

struct InStream : Inlet {
    explicit InStream(std::uint64_t stream_number) noexcept : number(stream_number) {}

    port::StreamId id() const noexcept { return port::StreamId(number); }
    bool finished() const noexcept { return ended && has_sink() && parked().empty(); }

    const std::uint64_t number;
    std::uint64_t limit = 0;  // that the peer knows of, or will with the next report
    std::uint64_t reported_limit = 0;
    bool ended = false;        // all bytes have arrived
    bool window_open = false;  // more than the first window may arrive
    bool refused = false;
    bool handled = false;  // its last event was reported; kept until the peer has the report
    bool look_queued = false;
    bool report_queued = false;
    std::uint8_t report = 0;  // details of the next report
};

}  // namespace nexar::shm
