#pragma once

namespace nexar::detail {

class Task;

// Spare tasks of the calling thread, for tasks of any node. They save a thread that starts and ends
// its own operations the atomic operations of a queue that all threads share.

/// nullptr: there is none.
Task* take_spare_task() noexcept;

/// Keeps a task that was cleared, until the thread takes it again or ends. Returns false if the
/// thread has enough.
bool keep_spare_task(Task* task) noexcept;

}  // namespace nexar::detail
