#pragma once

#include <sys/types.h>

#include <string_view>
#include <vector>

#include "base/time.hpp"

namespace nexar::run {

// The descendants of a process that is a child subreaper (prctl(2)): descendants that lose their
// parent become its children, even if they have their own session. So a subreaper without children
// has no descendants.

/// Makes this process the new parent of its orphaned descendants.
bool become_subreaper() noexcept;

/// The children of this process, including zombies. Only these are safe to signal: the kernel does
/// not reuse the pid of a child before the parent has waited for it.
std::vector<pid_t> children();

/// The parent named in the text of /proc/<pid>/stat; -1 if the text is malformed.
pid_t parent_in_stat(std::string_view stat) noexcept;

/// Sends SIGKILL to every child until no descendant is left, and waits for all of them. Returns
/// false if some are left at the deadline, such as those of another user. SIGCHLD must be blocked.
bool kill_descendants(TimePoint deadline);

}  // namespace nexar::run
