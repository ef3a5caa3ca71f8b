#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "wire/limits.hpp"

namespace nexar::run {

/// The most ranks of a run: a seed cannot form a larger cluster.
inline constexpr std::uint32_t kMostRanks = wire::kMaxViewMembers;

/// The ranks that run on one host: `count` ranks starting at `first_rank`.
struct HostShare {
    std::string host;
    std::uint32_t first_rank = 0;
    std::uint32_t count = 0;

    /// True for this machine, which needs no ssh.
    bool is_local() const noexcept { return host == "localhost"; }
};

/// Assigns ranks to hosts. `hosts` is the value of --host: `a:2,b:2` with slots, or `a,b` for equal
/// shares, of which the first ones may be larger; empty for this machine. Hosts are filled in
/// order, and hosts without a rank are left out. `ranks` may be absent if there are slots. Fails
/// with invalid_argument.
Result<std::vector<HostShare>> share_ranks(std::string_view hosts,
                                           std::optional<std::uint32_t> ranks);

}  // namespace nexar::run
