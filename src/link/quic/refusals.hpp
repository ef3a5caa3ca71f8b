#pragma once

#include <cstdint>
#include <optional>

#include "base/time.hpp"

namespace nexar::quic {

/// Decides when a peer whose host refuses our packets (ICMP port unreachable) counts as dead.
///
/// ICMP can be forged, so a refusal is only a hint: it starts probes, and any answer of the peer
/// ends the suspicion. The peer counts as dead when the refusals continue and no probe was answered
/// for kPatience. A host answers with at most six refusals at once and then one per second (Linux,
/// net.ipv4.icmp_ratelimit), so six of them count as refusals that continue.
///
/// No clock inside: the caller passes the time.
class Refusals {
public:
    static constexpr Duration kPatience = std::chrono::milliseconds(500);
    static constexpr Duration kProbeEvery = std::chrono::milliseconds(100);
    /// The suspicion ends after this time without a refusal.
    static constexpr Duration kForget = std::chrono::seconds(2);
    static constexpr std::uint64_t kLeast = 3;
    static constexpr std::uint64_t kLeastIfClosing = 2;
    static constexpr std::uint64_t kBurst = 6;

    /// The peer's host refused a packet. `proven`: it quoted the packet, so only someone who saw
    /// the packet can have sent the refusal. Other refusals only start probes.
    /// `closing`: the link is being closed, so that a probe cannot wait.
    void refused(TimePoint now, bool proven, bool closing = false) noexcept {
        if (!probe_at_ || (closing && proven && count_ == 0)) probe_at_ = now;
        if (!proven) return;
        if (count_++ == 0) first_at_ = now;
        last_at_ = now;
    }

    /// The peer sent a packet. One more probe follows, because it may have died since.
    void heard() noexcept { count_ = 0; }

    bool suspects() const noexcept { return probe_at_.has_value(); }

    /// When to probe the peer next or declare it dead.
    std::optional<TimePoint> due() const noexcept { return probe_at_; }

    /// A probe is being sent.
    void probed(TimePoint now) noexcept {
        const bool goes_on = count_ != 0 && now - last_at_ < kForget;
        if (!goes_on) count_ = 0;
        probe_at_ = goes_on ? std::optional(now + kProbeEvery) : std::nullopt;
    }

    /// When the peer of a link that this side closes counts as dead: after `patience`, in which a
    /// live peer answers a probe. Less is at stake than for other links, so two refusals are
    /// enough.
    std::optional<TimePoint> dead_at_if_closing(Duration patience) const noexcept {
        return count_ < kLeastIfClosing ? std::nullopt : std::optional(first_at_ + patience);
    }

    bool dead(TimePoint now) const noexcept {
        const bool continued = last_at_ - first_at_ >= kProbeEvery || count_ >= kBurst;
        return count_ >= kLeast && continued && now - first_at_ >= kPatience;
    }

private:
    std::optional<TimePoint> probe_at_{};
    std::uint64_t count_ = 0;  // proven ones since the last packet of the peer
    TimePoint first_at_{};
    TimePoint last_at_{};
};

}  // namespace nexar::quic
