#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace nexar::runtime {

namespace detail {
/// How many forks lie between the process that loaded this library and this one.
extern constinit std::atomic<std::uint32_t> fork_depth;
}  // namespace detail

/// Remembers the process that made it.
///
/// A child made by fork() has the memory of its parent but none of its threads, and shares its
/// descriptors: what the child does to an epoll set or a socket, it does to the parent. Costs a
/// load and a comparison, no system call. Does not see children that were made by a bare clone().
class ForkGuard {
public:
    ForkGuard();

    /// Whether this is a child of the process that made it.
    bool forked() const noexcept {
        return detail::fork_depth.load(std::memory_order_relaxed) != depth_;
    }

    /// Throws Error(Errc::forked) in a child. `doing` completes "cannot ... in a forked child".
    void check(const char* doing) const {
        if (forked()) refuse(doing);
    }

private:
    [[noreturn]] static void refuse(const char* doing);

    std::uint32_t depth_;
};

/// Keeps something of the parent for as long as the child lives. Its destructor would join threads
/// that the child does not have, and act on descriptors that the parent still uses.
void keep_in_child(std::shared_ptr<void> of_parent);

}  // namespace nexar::runtime
