#include "link/quic/gate.hpp"

#include <cstring>

#include "base/random.hpp"

namespace nexar::quic {

Gate::Gate(const GateLimits& limits, std::uint64_t seed)
    : limits_(limits),
      seed_(seed),
      unproven_(limits.new_per_second_before_retry, limits.new_per_second_before_retry),
      replies_(limits.replies_per_second, limits.replies_per_second / 100),
      networks_(kNetworks, TokenBucket(limits.per_network_per_second, limits.per_network_burst)) {}

Gate::Verdict Gate::judge(TimePoint now, const Address& from, bool proven) {
    if (half_open_ >= limits_.half_open) return Verdict::drop;
    if (!proven) {
        const bool busy = half_open_ >= limits_.half_open_before_retry || !unproven_.take(now);
        return busy ? Verdict::retry : Verdict::accept;
    }
    const auto network = from.prefix();
    std::uint64_t number = 0;
    std::memcpy(&number, network.data(), sizeof number);
    TokenBucket& bucket = networks_[SplitMix64(number ^ seed_).next() % kNetworks];
    return bucket.take(now) ? Verdict::accept : Verdict::drop;
}

}  // namespace nexar::quic
