#pragma once

#include <optional>
#include <string>

namespace nexar {

/// How many processors the ranks of a job on this host share, as far as one of them can tell; a
/// fraction greater than 0. Takes some 100 us: several files are read.
///
/// The smaller of two limits counts. The first is the number of processors in the affinity mask of
/// this process or of its parent, whichever is larger: a launcher that binds ranks gives each its
/// own part of the processors, so the mask of one bound rank does not say how many ranks share
/// them. The second is the CPU quota of the control group. It is not multiplied by the number of
/// groups if each rank has its own: a group that exceeds its quota stands still for the rest of the
/// period, often 100 ms, which costs much more than sleeping too early.
double usable_processors();

/// The smallest CPU quota on the path from the control group of this process to the root of the
/// hierarchy, in processors; nullopt without a quota. Understands versions 1 and 2 of control
/// groups and hosts that mount both. `root` precedes the paths of all files that are read.
std::optional<double> cpu_quota(const std::string& root = {});

}  // namespace nexar
