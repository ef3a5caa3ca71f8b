#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <string>
#include <string_view>

namespace nexar {

// Parses Slurm's descriptions of the hosts of a step. Pure; every Error is Errc::malformed and
// quotes the text.

/// A list of hosts such as `node[001-004,7],gpu3`.
struct NodeList {
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 16;
    static constexpr std::uint32_t kMaxHosts = std::uint32_t{1} << 20;
    static constexpr std::size_t kMaxHostBytes = 253;  // the longest DNS name

    std::string first{};      // the host of the first task
    std::uint32_t count = 0;  // a host that is listed twice counts twice
};

/// Parses the whole list: names separated by commas, each with any number of brackets that contain
/// numbers and ranges. The low end of a range determines the number of digits. Only the first host
/// is expanded, so that a short text cannot use much memory.
Result<NodeList> parse_node_list(std::string_view text);

/// The number of tasks on node number `node` according to a text such as `2(x3),1`: two on each of
/// the first three nodes, one on the fourth.
Result<std::uint32_t> tasks_on_node(std::string_view text, std::uint32_t node);

}  // namespace nexar
