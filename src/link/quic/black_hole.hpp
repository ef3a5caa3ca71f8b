#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>

#include "base/time.hpp"
#include "link/quic/packet_path.hpp"

namespace nexar::quic {

/// Reacts when a path drops large datagrams that it used to carry, as after a change of route (RFC
/// 8899 4.3): sends only the smallest size that every path carries, and retries the larger size
/// later, at growing intervals.
class BlackHole {
public:
    /// This many packets of one stream, lost while it makes no progress for longer than a
    /// retransmission takes, are not an accident.
    static constexpr std::size_t kLossesInRow = 8;

    /// The largest datagram to send now.
    std::size_t limit(TimePoint now) noexcept {
        if (limited_ && now >= until_) limited_ = false;
        return limited_ ? kLeastDatagram : std::numeric_limits<std::size_t>::max();
    }

    bool limited() const noexcept { return limited_; }

    /// Reports the packets that a stream without progress lost; returns true if they mean a black
    /// hole.
    bool lost(TimePoint now, std::size_t in_row) noexcept {
        if (limited_ || in_row < kLossesInRow) return false;
        begin(now);
        return true;
    }

    /// Reports that the peer has not answered for a long time. It may be busy, or nothing may reach
    /// it; smaller datagrams show which. `losses` counts the losses of all streams being sent.
    /// Returns true if the suspicion is new.
    bool silent(TimePoint now, std::size_t losses) noexcept {
        if (limited_) return false;
        begin(now);
        suspected_since_ = losses;
        return true;
    }

    /// Reports that the peer answered again. If no more packets were lost, it was only busy.
    void answered(std::size_t losses) noexcept {
        if (suspected_since_ && losses <= *suspected_since_) {
            limited_ = false;
            wait_ = kMinWait;
        }
        suspected_since_.reset();
    }

    bool suspected() const noexcept { return suspected_since_.has_value(); }

private:
    void begin(TimePoint now) noexcept {
        // A black hole that reappears at once is not a coincidence.
        wait_ = now < until_ + kCalm ? std::min(2 * wait_, kMaxWait) : kMinWait;
        limited_ = true;
        until_ = now + wait_;
    }

    static constexpr Duration kMinWait = std::chrono::seconds(2);
    static constexpr Duration kMaxWait = std::chrono::minutes(10);
    static constexpr Duration kCalm = std::chrono::seconds(10);

    bool limited_ = false;
    TimePoint until_ = TimePoint::min();
    Duration wait_ = kMinWait;
    std::optional<std::size_t> suspected_since_{};  // losses when the peer fell silent
};

}  // namespace nexar::quic
