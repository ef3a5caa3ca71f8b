#pragma once

#include <cstdint>

#include "run/keeper.hpp"

namespace nexar::run {

/// What the keeper is told. Behind `start` stands the join string.
struct Command {
    enum class Kind : std::uint32_t { start, signal_units, signal_strays, kill_unit, kill_all };

    Kind kind = Kind::start;
    std::int32_t signal = 0;
    std::uint32_t unit = 0;
};

/// The longest join string, and room for more.
inline constexpr std::size_t kMaxJoinBytes = 16384;

/// The life of the keeper process; `line` leads to the launcher.
[[noreturn]] void run_keeper(const KeeperPlan& plan, int line);

}  // namespace nexar::run
