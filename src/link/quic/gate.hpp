#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/address.hpp"
#include "base/time.hpp"
#include "link/quic/token_bucket.hpp"
#include "port/link.hpp"

namespace nexar::quic {

/// Limits on what strangers may cost.
struct GateLimits {
    /// From this number of handshakes on, strangers must prove their address, and each source,
    /// address and network is rate-limited.
    std::size_t half_open_before_retry = 64;
    double new_per_second_before_retry = 100;
    /// Handshakes in progress; a quarter of the slots is reserved for members. The memory of all
    /// strangers together must stay below 16 MiB, which the test JoinFlood measures.
    std::size_t half_open = 112;
    /// Slots that an address and a network may hold when none is free; a newcomer then gets the
    /// slot of the oldest handshake of the largest holder.
    std::size_t half_open_per_address = 24;
    std::size_t half_open_per_network = 48;
    /// How long a stranger's handshake may last when half of the slots are taken.
    Duration short_life = std::chrono::seconds(1);
    double replies_per_second = 50'000;

    // Handshakes that may begin per second, and in a burst: per port of an address, per address,
    // per network (/24 or /56), of members, and in total.
    double per_source_per_second = 16;
    double per_source_burst = 32;
    double per_address_per_second = 400;
    double per_address_burst = 512;
    double per_network_per_second = 512;
    double per_network_burst = 512;
    double members_per_second = 512;
    double per_second = 768;
    double burst = 1024;
};

/// Decides about packets that belong to no connection, before anything is allocated for them, and
/// which handshake makes room for another.
///
/// Memory is fixed: sources share tables of buckets, placed by a hash with a secret seed, so nobody
/// can choose to share a bucket with a victim.
class Gate {
public:
    enum class Verdict : std::uint8_t {
        accept,
        retry,  // the client must first prove its address
        drop,
    };

    Gate(const GateLimits& limits, std::uint64_t seed);

    /// Judges the first packet of a client. `proven`: a Retry token proved its address.
    Verdict judge(TimePoint now, const Address& from, bool proven);

    /// True if a stateless answer (Retry, version negotiation, reset) may be sent.
    bool may_reply(TimePoint now) { return replies_.take(now); }

    /// Sets the addresses, ports included, that members dial from: they have reserved slots.
    void set_members(std::span<const Address> members);

    /// The handshake, if any, that must end before one from `from` may begin. Call again when it
    /// has ended.
    std::optional<port::LinkId> in_the_way(TimePoint now, const Address& from) const;
    /// True if there is no slot for `from` even then.
    bool full(const Address& from) const noexcept;

    /// Reports that a handshake began, and that it completed or failed.
    void opened(TimePoint now, port::LinkId link, const Address& from);
    void closed(port::LinkId link);
    std::size_t half_open() const noexcept { return half_open_.size(); }

private:
    static constexpr std::size_t kBuckets = 1024;

    struct HalfOpen {
        port::LinkId link{};
        TimePoint since{};
        std::uint64_t source =
            0;  // hashes of the address with port, without port, and of its network
        std::uint64_t address = 0;
        std::uint64_t network = 0;
        bool member = false;
    };

    std::uint64_t source_of(const Address& address) const noexcept;
    std::uint64_t address_of(const Address& address) const noexcept;
    std::uint64_t network_of(const Address& address) const noexcept;
    bool is_member(const Address& address) const noexcept;
    std::size_t strangers_allowed() const noexcept;
    bool pressed() const noexcept { return half_open() >= limits_.half_open_before_retry; }
    const HalfOpen* victim() const;

    GateLimits limits_;
    std::uint64_t seed_;
    std::vector<HalfOpen> half_open_;     // oldest first
    std::size_t strangers_ = 0;           // in half_open_
    std::vector<std::uint64_t> members_;  // hashes of their sources, sorted
    TokenBucket unproven_;
    TokenBucket replies_;
    TokenBucket of_members_;
    TokenBucket all_;
    std::vector<TokenBucket> sources_;
    std::vector<TokenBucket> addresses_;
    std::vector<TokenBucket> networks_;
};

}  // namespace nexar::quic
