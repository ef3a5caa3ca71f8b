#pragma once

#include <sys/types.h>

#include "base/descriptor.hpp"

namespace nexar::shm {

/// Tells early that a process was killed. The kernel frees the memory of a killed process before it
/// closes its sockets and reports its end, which takes 90 ms for each GiB of small pages. From the
/// beginning of that time on, no thread of the process has an address space.
class ProcessLife {
public:
    ProcessLife() noexcept = default;
    explicit ProcessLife(pid_t process);

    /// True if the process cannot run any more; false if it can, or if the kernel does not tell.
    /// Takes about a microsecond.
    bool has_ended() const;

private:
    pid_t process_ = 0;
    Descriptor statm_;  // of its first thread
};

}  // namespace nexar::shm
