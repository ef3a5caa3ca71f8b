#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <string>
#include <string_view>

namespace nexar {

// What Slurm says about the hosts of a step. Pure; every Error is Errc::malformed and quotes the
// text.

/// Hosts as `node[001-004,7],gpu3` lists them.
struct NodeList {
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 16;
    static constexpr std::uint32_t kMaxHosts = std::uint32_t{1} << 20;
    static constexpr std::size_t kMaxHostBytes = 253;  // the longest name of DNS

    std::string first{};      // the host of the first task
    std::uint32_t count = 0;  // a host that is listed twice counts twice
};

/// Reads the whole list: names separated by commas; in a name any number of brackets, each with
/// numbers and ranges of numbers. A range's low end says how many digits there are. Nothing is
/// expanded but the first host, so that a short text cannot ask for much memory.
Result<NodeList> parse_node_list(std::string_view text);

/// How many tasks run on node number `node` by `2(x3),1`: two on each of the first three nodes, one
/// on the fourth.
Result<std::uint32_t> tasks_on_node(std::string_view text, std::uint32_t node);

}  // namespace nexar
