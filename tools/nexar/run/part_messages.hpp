#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "run/ended.hpp"

namespace nexar::run {

// What a launcher and a part of its run on another host tell each other, one line each. The
// launcher writes to the part's standard input, behind the Part itself. The part writes to its
// standard output, among the lines of its ranks: those begin with the prefix of their rank, and
// these with a character that no prefix begins with.

/// Either end: says that it is there. Each sends it several times within the time after which the
/// other one gives up.
struct Alive {};
/// To a part: a signal for its ranks.
struct PassOn {
    int signal = 0;
};
/// From a part: a rank has ended.
struct RankEnded {
    std::uint32_t rank = 0;
    Ended how{};
};
/// From a part: its ranks have ended, and it ends with an exit code of its own, not one of ssh.
struct Finished {};

using ToPart = std::variant<Alive, PassOn>;
using FromPart = std::variant<Alive, RankEnded, Finished>;

/// With the end of the line.
std::string encode(const ToPart& message);
std::string encode(const FromPart& message);

/// `line` is without its end. Nothing for a line that is not understood, or is a rank's.
std::optional<ToPart> decode_to_part(std::string_view line);
std::optional<FromPart> decode_from_part(std::string_view line);

}  // namespace nexar::run
