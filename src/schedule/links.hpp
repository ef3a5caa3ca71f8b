#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nexar::schedule {

/// The kind of link between two ranks.
enum class LinkKind : std::uint8_t {
    host,    // QUIC within a host
    fabric,  // QUIC between hosts
};

/// The kind of link of every pair of ranks in a communicator. It follows from the hosts that the
/// ranks run on, so only those are stored.
class Links {
public:
    /// Every rank has its own host, in a world of any size.
    Links() = default;
    /// machines[rank] is any number that only ranks of the same host share.
    explicit Links(std::span<const std::uint32_t> machines);

    /// The links among these ranks, numbered in this order.
    Links among(std::span<const std::uint32_t> ranks) const;

    /// The host of a rank; hosts are numbered from 0 in the order of ranks.
    std::uint32_t host(std::uint32_t rank) const noexcept {
        return hosts_.empty() ? rank : hosts_[rank];
    }
    LinkKind between(std::uint32_t one, std::uint32_t other) const noexcept {
        return host(one) == host(other) ? LinkKind::host : LinkKind::fabric;
    }
    /// The slowest kind that any pair has.
    LinkKind slowest() const noexcept { return slowest_; }

    /// Equal if all pairs have equal links.
    std::uint64_t hash() const noexcept;

    friend bool operator==(const Links&, const Links&) = default;

private:
    std::vector<std::uint32_t> hosts_{};  // by rank; empty: each rank has its own
    LinkKind slowest_ = LinkKind::fabric;
};

}  // namespace nexar::schedule
