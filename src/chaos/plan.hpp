#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "base/time.hpp"
#include "link/sim/weather.hpp"

namespace nexar::chaos {

/// The setting failure_budget of all runs.
inline constexpr Duration kBudget = std::chrono::milliseconds(500);

enum class FaultKind : std::uint8_t {
    kill,       // a process; its machine refuses packets
    power_off,  // a machine, without a word
    pause,      // a process is stopped
    slow,       // every turn of a process takes a while
    cut,        // one direction of one path
    cut_pair,   // both directions
    isolate,    // all paths of a machine
    halve,      // all paths between two halves
    storm,      // loss, duplicates and late packets everywhere
    kill_seed,  // its next process has the same state directory
    join,       // another process
    leave,      // a process leaves at the next checkpoint
    quit,       // a process closes its node in the middle of whatever it does
    count,
};
std::string_view name(FaultKind kind) noexcept;

/// One fault. All of it follows from the seed and its place in the list, so that the others stay
/// the same when it is left out.
struct Fault {
    FaultKind kind{};
    Duration at{};           // since the cluster formed
    Duration lasts{};        // for kills: until the process is started again; zero: never
    std::size_t a = 0;       // a machine
    std::size_t b = 0;       // another one
    std::uint64_t side = 0;  // halve: a bit for each machine
    sim::DatagramWeather weather{};
    Duration turn{};  // slow
};

/// "12.345 s: pauses machine 3 for 1.250 s"
std::string text_of(const Fault& fault);

constexpr double seconds(Duration duration) noexcept {
    return std::chrono::duration<double>(duration).count();
}

/// What happens in a run.
struct Plan {
    std::size_t nodes = 0;     // that form the cluster
    std::size_t machines = 0;  // with those of later processes, and the seed's, which is 0
    sim::DatagramWeather weather{};
    Duration span{};  // the faults begin in it
    std::vector<Fault> faults{};
};

/// `nodes`: 0 lets the seed choose 2 to 16.
Plan plan_of(std::uint64_t seed, std::size_t nodes, Duration budget);

}  // namespace nexar::chaos
