#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"
#include "link/sim/byte_queue.hpp"
#include "port/link.hpp"

namespace nexar::sim {

/// The receiving half of a lane or of a payload stream: the bytes that arrived and those that its
/// sink took.
class Inlet {
public:
    bool has_sink() const noexcept { return sink_ != nullptr; }
    void attach(port::Sink& sink) noexcept { sink_ = &sink; }
    /// May be called by the sink itself.
    void detach() noexcept { sink_ = nullptr; }

    void arrived_up_to(std::uint64_t offset) noexcept { arrived_ = offset; }
    std::uint64_t arrived() const noexcept { return arrived_; }
    std::uint64_t taken() const noexcept { return taken_; }

    void ended() noexcept { ended_ = true; }
    bool has_ended() const noexcept { return ended_; }
    /// True if the sink has taken all bytes.
    bool finished() const noexcept { return ended_ && sink_ != nullptr && taken_ == arrived_; }

    /// Passes the bytes that arrived to the sink, unless the sink is pending. Places each piece
    /// directly with probability `direct`, if the sink offers memory.
    void offer(ByteQueue& bytes, Random& random, double direct);
    /// The sink may have room again.
    void wake() noexcept { pending_ = false; }

    /// Stops using the sink; drops everything that arrives.
    void abandon() noexcept {
        sink_ = nullptr;
        handled = true;
    }

    // The link's state for this half.
    bool opened = false;       // Opened was reported
    bool handled = false;      // its last event was reported
    bool window_open = false;  // more than the first window may arrive
    bool refused = false;
    bool stopped = false;  // the other side has been asked to stop
    bool look_queued = false;
    bool report_queued = false;

private:
    port::Sink* sink_ = nullptr;
    std::uint64_t arrived_ = 0;
    std::uint64_t taken_ = 0;
    bool ended_ = false;
    bool pending_ = false;
};

}  // namespace nexar::sim
