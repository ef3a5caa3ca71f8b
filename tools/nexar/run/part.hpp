#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.hpp"
#include "run/survivors.hpp"

namespace nexar::run {

/// The part of a run that one host starts. It travels through ssh's standard input, because the
/// join string is secret and command arguments are not.
struct Part {
    std::string join{};
    std::uint32_t world = 0;
    std::uint32_t first_rank = 0;
    std::uint32_t count = 0;
    std::vector<std::string> command{};
    std::vector<std::string> environment{};  // "NAME=value", added to the host's environment
    std::string directory{};
    Duration grace{};
    Duration host_timeout = std::chrono::seconds(15);  // see SupervisorOptions
    OnFailure on_failure = OnFailure::end;
    bool bind = false;  // each rank to its own share of the processors
    bool output_in_colour = false;
    bool errors_in_colour = false;
};

inline constexpr Duration kMaxHostTimeout = std::chrono::hours(24);
inline constexpr std::size_t kMaxPartBytes = std::size_t{1} << 22;

/// Encodes as one line.
std::string encode(const Part& part);
/// Fails with malformed; the message does not contain the text, which holds a secret.
Result<Part> decode_part(std::string_view line);

}  // namespace nexar::run
