#pragma once

#include <cstdint>

#include "run/keeper.hpp"

namespace nexar::run {

/// A message to the keeper. The join string follows `start` and `restart`.
struct Command {
    enum class Kind : std::uint32_t {
        start,
        restart,
        signal_units,
        signal_strays,
        kill_unit,
        kill_all
    };

    Kind kind = Kind::start;
    std::int32_t signal = 0;
    std::uint32_t unit = 0;
    std::uint32_t number = 0;  // of a restart
};

/// More than the longest join string.
inline constexpr std::size_t kMaxJoinBytes = 16384;

/// The main function of the keeper process; `line` is its socket to the launcher.
[[noreturn]] void run_keeper(const KeeperPlan& plan, int line);

}  // namespace nexar::run
