#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/time.hpp"

namespace nexar::chaos {

struct RunOptions {
    std::uint64_t seed = 1;
    std::size_t nodes = 0;            // that form the cluster; 0: the seed chooses 2 to 16
    std::string topology = "full";    // the setting of that name
    std::set<std::size_t> without{};  // faults to leave out, by their number
    /// Hears of everything that happens; may be empty.
    std::function<void(const std::string&)> say{};
};

struct RunResult {
    std::string rule{};     // the one that was broken; empty: none
    std::string failure{};  // how
    Duration at{};          // virtual time of that, since the cluster formed
    Duration elapsed{};     // virtual time in total
    std::uint64_t steps = 0;
    std::uint64_t trace = 0;  // equal for equal options
    std::size_t nodes = 0;
    unsigned faults = 0;  // that had an effect
    std::size_t views = 0;
    std::size_t worlds = 0;
    std::uint64_t operations = 0;
    std::uint64_t errors = 0;
    std::uint64_t sums = 0;
    std::uint64_t messages = 0;
    std::uint64_t agreements = 0;
    Duration slowest{};  // operation, not counting time in which something was disturbed
    Duration calm{};     // until the cluster was whole again
    /// The cluster cannot become whole, so that the calm phase proves nothing: a majority is gone
    /// for ever, or a single member knows the last view.
    bool beyond_repair = false;
};

RunResult run(const RunOptions& options);

/// The faults of a run, one line each with its number.
std::vector<std::string> faults_of(const RunOptions& options);

/// Leaves out faults, one at a time, as long as the same rule is broken. Returns the options of the
/// smallest run that was found.
RunOptions minimised(RunOptions options, const std::string& rule);

/// A few lines for people: what happened in a run.
std::string summary_of(const RunOptions& options, const RunResult& result);

/// "nexar sim chaos --seed 7 --nodes 5 --without 3,7"
std::string command_of(const RunOptions& options);

}  // namespace nexar::chaos
