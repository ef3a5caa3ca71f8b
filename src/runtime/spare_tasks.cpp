#include "runtime/spare_tasks.hpp"

#include <memory>
#include <utility>

#include "runtime/task.hpp"

namespace nexar::detail {

namespace {

struct SpareTasks {
    static constexpr int kMost = 16;

    Task* first = nullptr;
    int count = 0;
    bool watched = false;  // deleted when the thread ends
    bool over = false;     // the thread is ending
};

// Without a destructor, so that a use of it costs no check whether it was made.
thread_local constinit SpareTasks spares;

struct SpareTasksEnd {
    SpareTasksEnd() = default;
    SpareTasksEnd(const SpareTasksEnd&) = delete;
    SpareTasksEnd& operator=(const SpareTasksEnd&) = delete;
    ~SpareTasksEnd() {
        spares.over = true;
        while (spares.first != nullptr) {
            const std::unique_ptr<Task> task(spares.first);
            spares.first = task->next_spare;
        }
    }
};

void delete_at_end_of_thread() {
    static thread_local const SpareTasksEnd end;
}

}  // namespace

Task* take_spare_task() noexcept {
    SpareTasks& here = spares;
    Task* const task = here.first;
    if (task == nullptr) return nullptr;
    here.first = std::exchange(task->next_spare, nullptr);
    --here.count;
    return task;
}

bool keep_spare_task(Task* task) noexcept {
    SpareTasks& here = spares;
    if (here.over || here.count == SpareTasks::kMost) return false;
    if (!std::exchange(here.watched, true)) delete_at_end_of_thread();
    task->next_spare = std::exchange(here.first, task);
    ++here.count;
    return true;
}

}  // namespace nexar::detail
