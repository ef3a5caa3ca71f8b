#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace nexar::quic {

/// Decides when a peer whose host refuses our packets (ICMP port unreachable) counts as dead.
///
/// ICMP can be forged, so a refusal is only a hint: it starts probes, and whatever the peer answers
/// ends the suspicion. The peer counts as dead when the refusals continue and no probe was answered
/// for kPatience. A host answers with at most six refusals at once and then one per second (Linux,
/// net.ipv4.icmp_ratelimit), so six of them count as refusals that continue.
///
/// No clock inside: the caller says what time it is.
class Refusals {
public:
    static constexpr Duration kPatience = std::chrono::milliseconds(500);
    static constexpr Duration kProbeEvery = std::chrono::milliseconds(100);
    /// Suspicion ends when no refusal has come for so long.
    static constexpr Duration kForget = std::chrono::seconds(2);
    static constexpr std::uint64_t kLeast = 3;
    static constexpr std::uint64_t kBurst = 6;

    /// The peer's host refused a packet. `proven`: it quoted the packet, so that only somebody who
    /// saw the packet can have sent the refusal; others start probes and count no further.
    void refused(TimePoint now, bool proven) noexcept {
        if (!probe_at_) probe_at_ = now;
        if (!proven) return;
        if (count_++ == 0) first_at_ = now;
        last_at_ = now;
    }

    /// The peer lives. One more probe follows: what was heard may have been sent before it died.
    void heard() noexcept { count_ = 0; }

    bool suspects() const noexcept { return probe_at_.has_value(); }

    /// When the peer should next be asked for a sign of life, or declared dead.
    std::optional<TimePoint> due() const noexcept { return probe_at_; }

    /// A probe is being sent.
    void probed(TimePoint now) noexcept {
        const bool goes_on = count_ != 0 && now - last_at_ < kForget;
        if (!goes_on) count_ = 0;
        probe_at_ = goes_on ? std::optional(now + kProbeEvery) : std::nullopt;
    }

    bool dead(TimePoint now) const noexcept {
        const bool continued = last_at_ - first_at_ >= kProbeEvery || count_ >= kBurst;
        return count_ >= kLeast && continued && now - first_at_ >= kPatience;
    }

private:
    std::optional<TimePoint> probe_at_{};
    std::uint64_t count_ = 0;  // proven ones, since the peer was last heard
    TimePoint first_at_{};
    TimePoint last_at_{};
};

}  // namespace nexar::quic
