#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace nexar::run {

/// What one host of a run is to start, as it travels through ssh's standard input: the join string
/// is a secret, and no argument of a command is one.
struct Part {
    std::string join{};
    std::uint32_t world = 0;
    std::uint32_t first_rank = 0;
    std::uint32_t count = 0;
    std::vector<std::string> command{};
    std::vector<std::string> environment{};  // "NAME=value", on top of what the host has
    std::string directory{};
    Duration grace{};
    Duration host_timeout = std::chrono::seconds(15);  // see SupervisorOptions
    bool output_in_colour = false;
    bool errors_in_colour = false;
};

inline constexpr Duration kMaxHostTimeout = std::chrono::hours(24);
inline constexpr std::size_t kMaxPartBytes = std::size_t{1} << 22;

/// One line.
std::string encode(const Part& part);
/// An Error (malformed) does not show the text.
Result<Part> decode_part(std::string_view line);

}  // namespace nexar::run
