#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nexar::schedule {

/// What two ranks are connected by.
enum class LinkKind : std::uint8_t {
    host,    // QUIC within a machine
    fabric,  // QUIC between machines
};

/// The links of a communicator, pair by pair. Which one a pair has follows from where its ranks
/// run, so that is what is kept.
class Links {
public:
    /// Every rank on a machine of its own, however many there are.
    Links() = default;
    /// By rank: any number that only ranks of the same machine have.
    explicit Links(std::span<const std::uint32_t> machines);

    /// Of these ranks, in this order.
    Links among(std::span<const std::uint32_t> ranks) const;

    /// The machine of a rank, from 0 in the order of ranks.
    std::uint32_t host(std::uint32_t rank) const noexcept {
        return hosts_.empty() ? rank : hosts_[rank];
    }
    LinkKind between(std::uint32_t one, std::uint32_t other) const noexcept {
        return host(one) == host(other) ? LinkKind::host : LinkKind::fabric;
    }
    /// One that some pair has, and none a slower one.
    LinkKind slowest() const noexcept { return slowest_; }

    /// Equal where all pairs have the same links.
    std::uint64_t hash() const noexcept;

    friend bool operator==(const Links&, const Links&) = default;

private:
    std::vector<std::uint32_t> hosts_{};  // by rank; empty: each its own
    LinkKind slowest_ = LinkKind::fabric;
};

}  // namespace nexar::schedule
