#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "process/chaos/cluster.hpp"

namespace nexar::chaos {

/// One fault of a schedule. `first` and `second` choose the processes among those that live then.
struct Fault {
    enum class Kind : std::uint8_t {
        kill,
        kill_two,          // at the same time
        kill_again,        // the second one while the survivors recover
        kill_during_join,  // a member, while a process joins
        kill_joiner,       // a process that joins
        stop,              // until it was evicted
        pause,             // shorter than the failure budget
        cut,               // one host or two
    };

    Kind kind = Kind::kill;
    std::uint64_t first = 0;
    std::uint64_t second = 0;
    std::chrono::microseconds after{};  // since the cluster was whole
    std::chrono::microseconds apart{};  // between the two steps of a fault
};

std::string describe(const Fault& fault);

/// The same seed gives the same schedule.
std::vector<Fault> schedule(std::uint64_t seed, int faults, bool with_cuts);

struct Scenario {
    int ranks = 5;
    std::string link = "auto";
    int cycles = 10;
    std::uint64_t seed = 1;
    bool with_cuts = false;             // needs Networks
    std::optional<Fault::Kind> only{};  // instead of the kinds of the schedule
    std::chrono::milliseconds hammer{0};
    std::chrono::seconds at_most = std::chrono::hours(24);
    chaos_checker::Rules rules{};
};

/// Runs faults one after the other; after each one the cluster grows to its full size again. One
/// process is never hurt, so that its memory shows leaks. Reports to GoogleTest what is wrong.
/// Returns the number of cycles.
int run_scenario(const Scenario& scenario, Networks* networks = nullptr);

}  // namespace nexar::chaos
