#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "link/quic/token_bucket.hpp"

namespace nexar::quic {

/// What strangers may cost.
struct GateLimits {
    std::size_t half_open_before_retry = 64;
    double new_per_second_before_retry = 100;
    std::size_t half_open = 256;
    double replies_per_second = 50'000;
    double per_network_per_second = 256;  // handshakes begun from one /24 or /56
    double per_network_burst = 512;
};

/// Decides about packets that belong to no connection, before anything is allocated for them.
///
/// Memory is fixed: networks share a table of buckets, placed by a hash with a secret seed, so that
/// nobody can choose whom to share one with.
class Gate {
public:
    enum class Verdict : std::uint8_t {
        accept,
        retry,  // prove first that you receive at your address
        drop,
    };

    Gate(const GateLimits& limits, std::uint64_t seed);

    /// A first packet of a client. `proven`: its address is, by a Retry token.
    Verdict judge(TimePoint now, const Address& from, bool proven);

    /// Whether an answer that keeps no state (Retry, version negotiation, reset) may be sent.
    bool may_reply(TimePoint now) { return replies_.take(now); }

    /// A handshake was begun for a stranger; it completed or ended.
    void opened() noexcept { ++half_open_; }
    void closed() noexcept { --half_open_; }
    std::size_t half_open() const noexcept { return half_open_; }

private:
    static constexpr std::size_t kNetworks = 1024;

    GateLimits limits_;
    std::uint64_t seed_;
    std::size_t half_open_ = 0;
    TokenBucket unproven_;
    TokenBucket replies_;
    std::vector<TokenBucket> networks_;
};

}  // namespace nexar::quic
