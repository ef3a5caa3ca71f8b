#include "runtime/fork_guard.hpp"

#include <fmt/format.h>
#include <pthread.h>

#include <nexar/error.hpp>
#include <utility>

#include "base/assert.hpp"

namespace nexar::runtime {

namespace detail {
constinit std::atomic<std::uint32_t> fork_depth{0};
}

namespace {

// Runs in the child before fork() returns there, while the child has a single thread.
void enter_child() {
    detail::fork_depth.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

ForkGuard::ForkGuard() {
    static const int registered = pthread_atfork(nullptr, nullptr, &enter_child);
    NEXAR_ASSERT(registered == 0, "pthread_atfork fails only if memory runs out");
    depth_ = detail::fork_depth.load(std::memory_order_relaxed);
}

void ForkGuard::refuse(const char* doing) {
    throw Error(
        Errc::forked,
        fmt::format("cannot {} in a forked child: the node belongs to the parent process, "
                    "which continues to use it; in the child, create a new node after fork or call "
                    "exec",
                    doing));
}

void keep_in_child(std::shared_ptr<void> of_parent) {
    // Reachable for the life of the process, so that leak checkers accept it. A lock-free list,
    // because this child may fork at any time.
    struct Kept {
        std::shared_ptr<void> object{};
        Kept* next = nullptr;
    };
    static constinit std::atomic<Kept*> all{nullptr};
    auto* const one = new Kept{.object = std::move(of_parent), .next = all.load()};
    while (!all.compare_exchange_weak(one->next, one)) {
    }
}

}  // namespace nexar::runtime
