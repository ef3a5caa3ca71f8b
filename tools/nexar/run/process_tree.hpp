#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace nexar::run {

// All that descends from this process, for one that is a child subreaper (prctl(2)): what loses its
// parent becomes a child of this process, also when it has a session of its own. So nothing
// descends from a process without children.

/// Makes this process the one that its orphaned descendants fall to.
bool become_subreaper() noexcept;

/// The processes whose parent this process is, zombies included. Only these are safe to signal:
/// the number of a child is not given to another process before it was waited for.
std::vector<pid_t> children();

/// The parent that /proc/<pid>/stat names; -1 when the text is not understood.
pid_t parent_in_stat(std::string_view stat) noexcept;

/// SIGKILL to every child, again and again, until no descendant is left; waits for all of them.
/// False when some are left at the deadline: such as ones of another user. SIGCHLD must be blocked.
bool kill_descendants(TimePoint deadline);

}  // namespace nexar::run
