#pragma once

#include <chrono>

#include "base/time.hpp"
#include "engine/engine.hpp"
#include "engine/overlay.hpp"

namespace nexar::runtime {

/// How a node leaves its cluster: first everything arrives that it sent through tunnels, a goodbye
/// at the end, because relays forward for members only; then it asks the others to agree on a view
/// without it.
class Parting {
public:
    Parting(TimePoint begin, engine::Engine& engine) : begin_(begin) {
        engine.say_goodbye_through_tunnels();
    }

    /// False while something may still arrive. A member that has left already, or failed, answers
    /// nothing any more.
    bool settled(TimePoint now, const engine::Engine& engine) const noexcept {
        const bool early = now < begin_ + kSilence;
        return now >= begin_ + kSettleTime ||
               engine.tunnels_settled(early ? TimePoint::min() : now - kSilence);
    }
    /// When to ask again, although nothing has arrived.
    TimePoint next_look(TimePoint now) const noexcept {
        return now < begin_ + kSilence ? begin_ + kSilence : begin_ + kSettleTime;
    }

    /// How long it waits for the view without it. Where votes travel through tunnels, which may
    /// have to be opened first, they take longer.
    static Duration leave_time(const engine::Overlay* overlay) {
        return overlay == nullptr || overlay->complete() ? kLeaveTime : kSparseLeaveTime;
    }

private:
    static constexpr Duration kSettleTime = std::chrono::seconds(2);
    static constexpr Duration kSilence = std::chrono::milliseconds(500);
    static constexpr Duration kLeaveTime = std::chrono::milliseconds(100);
    static constexpr Duration kSparseLeaveTime = std::chrono::milliseconds(300);

    TimePoint begin_;
};

}  // namespace nexar::runtime
