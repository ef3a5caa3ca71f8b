#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace nexar::runtime {

namespace detail {
/// The number of forks between the process that loaded this library and this one.
extern constinit std::atomic<std::uint32_t> fork_depth;
}  // namespace detail

/// Remembers the process that created it.
///
/// A forked child has the memory of its parent but none of its threads, and shares its descriptors:
/// if the child changes an epoll set or a socket, it changes them for the parent too. A check costs
/// a load and a comparison, no system call. It does not detect children made by a bare clone().
class ForkGuard {
public:
    ForkGuard();

    /// True in a forked child of the process that created this object.
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

/// Keeps an object of the parent alive for the child's lifetime. Its destructor would join threads
/// that the child does not have, and act on descriptors that the parent still uses.
void keep_in_child(std::shared_ptr<void> of_parent);

}  // namespace nexar::runtime
