#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nexar::run {

/// The ranks that run on one host: `count` of them from `first_rank` on.
struct HostShare {
    std::string host;
    std::uint32_t first_rank = 0;
    std::uint32_t count = 0;

    /// This machine, without ssh.
    bool is_local() const noexcept { return host == "localhost"; }
};

/// Which ranks run where. `hosts` is the list of --host, `a:2,b:2` with slots or `a,b` for equal
/// shares, the first ones larger; empty for this machine. Hosts are filled in order, and one that
/// would get no rank is left out. `ranks` may be left open where slots say it. An Error
/// (invalid_argument) says what is wrong.
Result<std::vector<HostShare>> share_ranks(std::string_view hosts,
                                           std::optional<std::uint32_t> ranks);

}  // namespace nexar::run
