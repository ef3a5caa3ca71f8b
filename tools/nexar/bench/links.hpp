#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/communicator.hpp>
#include <nexar/node.hpp>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nexar::bench {

/// The links between the ranks of a world: for every pair, the kinds that it uses.
class LinkUse {
public:
    /// A set of kinds.
    enum : std::uint8_t { none = 0, quic = 1, shm = 2, other = 4 };

    /// `kinds` has a set for every rank and peer, rank by rank.
    LinkUse(std::uint32_t world, std::vector<std::uint8_t> kinds)
        : world_(world), kinds_(std::move(kinds)) {}

    /// "shm"; "shm between 5 pairs, quic between 1 pair" if pairs differ; "none" without pairs.
    std::string text() const;

    /// True if every pair, of which there is at least one, has shared memory.
    bool all_share_memory() const;
    /// The same for the pairs among these ranks.
    bool all_share_memory(std::span<const int> ranks) const;

    /// Fails with unsupported, naming a pair, if a connected pair does not send its data over
    /// `link`, which is quic, shm or auto (any).
    Result<void> require(std::string_view link) const;

private:
    std::uint8_t between(std::uint32_t rank, std::uint32_t peer) const {
        return kinds_[std::size_t{rank} * world_ + peer];
    }

    std::uint32_t world_;
    std::vector<std::uint8_t> kinds_;
};

/// Asks every rank for its links; all ranks call it together. Throws nexar::Error.
LinkUse links_between(const Node& node);

}  // namespace nexar::bench
