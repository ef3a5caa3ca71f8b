#pragma once

#include <span>
#include <string_view>

#include "groups.hpp"

namespace nexar::bench {

/// A named group of measurements between two processes.
struct Group {
    std::string_view name;
    void (*run)(Trials&, Report&, const GroupOptions&);
};

/// The main function of a benchmark with a client and a server process, each on its own core.
int run_pair_program(int argc, char** argv, std::string_view title, std::span<const Group> groups);

}  // namespace nexar::bench
