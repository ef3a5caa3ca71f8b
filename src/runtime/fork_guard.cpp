#include "runtime/fork_guard.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <nexar/error.hpp>

#include "base/assert.hpp"

namespace nexar::runtime {

namespace detail {
constinit std::atomic<std::uint32_t> fork_depth{0};
}

namespace {

// Runs in the child before fork() returns there, when it has one thread.
void enter_child() {
    detail::fork_depth.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

ForkGuard::ForkGuard() {
    static const int registered = pthread_atfork(nullptr, nullptr, &enter_child);
    NEXAR_ASSERT(registered == 0, "pthread_atfork fails only without memory");
    depth_ = detail::fork_depth.load(std::memory_order_relaxed);
}

void ForkGuard::refuse(const char* doing) {
    throw Error(Errc::forked,
                fmt::format("cannot {} in a forked child: the node belongs to the parent process, "
                            "which goes on using it; make a node of its own after fork, or call "
                            "exec",
                            doing));
}

}  // namespace nexar::runtime
