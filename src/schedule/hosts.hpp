#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "schedule/layout.hpp"
#include "schedule/links.hpp"
#include "schedule/request.hpp"

namespace nexar::schedule {

/// Ranks that exchange messages in one phase of a two-level algorithm. A rank's index in the list
/// is its position.
struct Group {
    std::vector<std::uint32_t> ranks;
    std::uint32_t me = 0;  // position of this rank

    std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(ranks.size()); }
};

/// The ranks of each host, as one rank sees them.
class Hosts {
public:
    explicit Hosts(const Request& request);

    std::uint32_t count() const noexcept { return static_cast<std::uint32_t>(hosts_.size()); }
    /// The host of this rank, and that of the root.
    std::uint32_t host() const noexcept { return host_; }
    std::uint32_t root_host() const noexcept { return root_host_; }

    /// The ranks of a host, in their order.
    std::span<const std::uint32_t> ranks(std::uint32_t host) const { return hosts_[host]; }
    /// The ranks of this rank's host.
    Group local() const;
    /// The same, but on the host of the root the root is first.
    Group local_from_root() const;

    /// The ranks of the host of the root, beginning with the root; `me` only if this rank is there.
    Group from_root() const;

    /// The number of owners per host: as many as the smallest host has ranks.
    std::uint32_t owners() const noexcept { return owners_; }
    /// The ranks at one position of every host, which is below owners().
    Group column(std::uint32_t position) const;
    /// The same for local_from_root().
    Group column_from_root(std::uint32_t position) const;

    /// One rank per host: its first one, on the host of the root the root.
    Group leaders(bool rooted) const;

    /// The ranks of a host for which the owner at this position acts: those at this position, this
    /// position + owners(), and so on.
    std::vector<std::uint32_t> owned(std::uint32_t host, std::uint32_t position) const;
    /// The same of all hosts, in the order of ranks.
    std::vector<std::uint32_t> owned(std::uint32_t position) const;

private:
    std::uint32_t rank_;
    std::uint32_t root_;
    std::uint32_t host_;
    std::uint32_t root_host_;
    std::uint32_t owners_;
    std::vector<std::vector<std::uint32_t>> hosts_;
};

/// The spans of consecutive ranks in an ascending list: chunks of each are contiguous in memory, so
/// that one message can carry them.
std::vector<Span> runs_of(std::span<const std::uint32_t> ranks);

}  // namespace nexar::schedule
