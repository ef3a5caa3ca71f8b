#include "chaos/run.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "chaos/simulation.hpp"

namespace nexar::chaos {

RunResult run(const RunOptions& options) {
    return Simulation(options).run();
}

std::vector<std::string> faults_of(const RunOptions& options) {
    std::vector<std::string> lines;
    const Plan plan = plan_of(options.seed, options.nodes, kBudget);
    lines.reserve(plan.faults.size());
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
        lines.push_back(fmt::format("{:2} {}{}", i, text_of(plan.faults[i]),
                                    options.without.contains(i) ? " (left out)" : ""));
    }
    return lines;
}

RunOptions minimised(RunOptions options, const std::string& rule) {
    const std::size_t faults = plan_of(options.seed, options.nodes, kBudget).faults.size();
    // Dropping one fault may make another one superfluous.
    for (bool smaller = true; smaller;) {
        smaller = false;
        for (std::size_t i = faults; i-- > 0;) {
            if (options.without.contains(i)) continue;
            RunOptions fewer = options;
            fewer.say = {};
            fewer.without.insert(i);
            if (run(fewer).rule != rule) continue;
            options.without.insert(i);
            smaller = true;
        }
    }
    return options;
}

std::string command_of(const RunOptions& options) {
    std::string text = fmt::format("nexar sim chaos --seed {}", options.seed);
    if (options.nodes != 0) text += fmt::format(" --nodes {}", options.nodes);
    if (!options.without.empty()) {
        text += fmt::format(" --without {}", fmt::join(options.without, ","));
    }
    return text;
}

std::string summary_of(const RunOptions& options, const RunResult& result) {
    std::string text =
        fmt::format("seed              {}\nnodes             {}\n", options.seed, result.nodes);
    text += fmt::format(
        "virtual time      {:.1f} s, {} events\n"
        "views             {}, {} worlds, {} faults\n"
        "operations        {}, {} of them failed; {} sums, {} messages and {} agreements checked\n"
        "slowest           {:.0f} ms while nothing was disturbed\n"
        "calm              {}\n"
        "trace             {:016x}\n",
        seconds(result.elapsed), result.steps, result.views, result.worlds, result.faults,
        result.operations, result.errors, result.sums, result.messages, result.agreements,
        seconds(result.slowest) * 1e3,
        result.beyond_repair ? std::string("not reached: the cluster is beyond repair")
                             : fmt::format("after {:.1f} s", seconds(result.calm)),
        result.trace);
    text += result.rule.empty()
                ? "outcome           no rule was broken\n"
                : fmt::format("outcome           rule {} was broken at {:.3f} s: {}\n", result.rule,
                              seconds(result.at), result.failure);
    return text;
}

}  // namespace nexar::chaos
