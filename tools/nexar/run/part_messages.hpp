#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "run/ended.hpp"

namespace nexar::run {

// Messages between a launcher and a part of its run on another host, one line each. The launcher
// writes to the part's standard input, after the Part itself. The part writes to its standard
// output, among the lines of its ranks: those begin with the prefix of their rank, and messages
// with a character that no prefix begins with.

/// In both directions: a heartbeat. Each side sends several within the other side's timeout.
struct Alive {};
/// To a part: a signal for its ranks.
struct PassOn {
    int signal = 0;
};
/// To a part: start the rank again, for the `number`th time, as a new member of the cluster.
struct Restart {
    std::uint32_t rank = 0;
    std::uint32_t number = 0;
    std::string join{};  // a secret
};
/// To a part: no rank will be restarted any more.
struct Settle {};
/// From a part: a rank has ended.
struct RankEnded {
    std::uint32_t rank = 0;
    Ended how{};
};
/// From a part: its ranks have ended, and the exit code that follows is its own, not that of ssh.
struct Finished {};

using ToPart = std::variant<Alive, PassOn, Restart, Settle>;
using FromPart = std::variant<Alive, RankEnded, Finished>;

/// Includes the line end.
std::string encode(const ToPart& message);
std::string encode(const FromPart& message);

/// `line` excludes the line end. Returns nullopt for a malformed line and for a rank's output.
std::optional<ToPart> decode_to_part(std::string_view line);
std::optional<FromPart> decode_from_part(std::string_view line);

}  // namespace nexar::run
