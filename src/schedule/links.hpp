#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace nexar::schedule {

/// The kind of link between two ranks.
enum class LinkKind : std::uint8_t {
    host,    // within a host: shared memory, or QUIC where the settings exclude it
    fabric,  // QUIC between hosts
};

/// How ranks are spread over hosts, as far as the cost and the guarantees of algorithms depend on
/// it.
struct Levels {
    std::uint32_t hosts = 1;
    std::uint32_t smallest = 1;  // ranks of the smallest host, and of the largest
    std::uint32_t largest = 1;
    /// The ranks of every host follow each other, so folding host by host keeps the order of ranks.
    bool consecutive = true;
    /// Folding the ranks of each host along the tree of fold_tree.hpp, and then the hosts, gives
    /// the tree of the whole world.
    bool canonical = true;
    /// Rounds of FoldTree whose partners are all on one host, counted from the first one, and
    /// whether the pairs before the rounds are.
    std::uint32_t near_rounds = 0;
    bool near_pairs = false;
    /// The most ranks of a host whose next rank is on another host.
    std::uint32_t crossings = 1;

    /// There is something to do both within hosts and between them.
    bool two() const noexcept { return hosts > 1 && largest > 1; }

    friend bool operator==(const Levels&, const Levels&) = default;
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
    /// The levels of a communicator of `world` ranks, the number for which the links were made.
    Levels levels(std::uint32_t world) const noexcept;

    /// The slowest kind that any pair has.
    LinkKind slowest() const noexcept { return slowest_; }

    /// Equal if all pairs have equal links.
    std::uint64_t hash() const noexcept;

    friend bool operator==(const Links&, const Links&) = default;

private:
    std::vector<std::uint32_t> hosts_{};  // by rank; empty: each rank has its own
    LinkKind slowest_ = LinkKind::fabric;
    Levels levels_{};  // unless hosts_ is empty
};

}  // namespace nexar::schedule
