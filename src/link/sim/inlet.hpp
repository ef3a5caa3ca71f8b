#pragma once

#include <cstddef>
#include <cstdint>

#include "base/random.hpp"
#include "link/sim/byte_queue.hpp"
#include "port/link.hpp"

namespace nexar::sim {

/// The receiving half of a lane or of a payload stream: what arrived, and what its sink took.
class Inlet {
public:
    bool has_sink() const noexcept { return sink_ != nullptr; }
    void attach(port::Sink& sink) noexcept { sink_ = &sink; }

    void arrived_up_to(std::uint64_t offset) noexcept { arrived_ = offset; }
    std::uint64_t arrived() const noexcept { return arrived_; }
    std::uint64_t taken() const noexcept { return taken_; }

    void ended() noexcept { ended_ = true; }
    bool has_ended() const noexcept { return ended_; }
    /// All bytes were taken.
    bool finished() const noexcept { return ended_ && sink_ != nullptr && taken_ == arrived_; }

    /// Gives the sink what arrived, unless it is pending; by direct placement, where it lets us,
    /// with the probability `direct` for each piece.
    void offer(ByteQueue& bytes, Random& random, double direct);
    /// The sink may have room again.
    void wake() noexcept { pending_ = false; }

    /// Uses the sink no more; what arrives is dropped.
    void abandon() noexcept {
        sink_ = nullptr;
        handled = true;
    }

    // What the link keeps with it.
    bool opened = false;       // the other side's stream was told
    bool handled = false;      // its last event was told
    bool window_open = false;  // more than the beginning may come
    bool refused = false;
    bool stopped = false;  // the other side was told so
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
