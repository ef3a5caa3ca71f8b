#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <nexar/communicator.hpp>
#include <nexar/export.hpp>
#include <nexar/work.hpp>
#include <optional>
#include <string>
#include <vector>

namespace nexar {

namespace detail {
class NodeBody;
}

// Members are named by their rank in the cluster: the rank that a process got when it joined. It is
// never given to another process. Ranks in a communicator count from 0 without gaps; in the world
// that has formed first, both are equal.

/// The members that have failed, in the order in which the others agreed on it.
class NEXAR_EXPORT Failures {
public:
    explicit Failures(std::shared_ptr<detail::NodeBody> body) noexcept : body_(std::move(body)) {}

    /// All that have failed so far.
    std::vector<int> list() const;

    /// Completes when the list is longer than `known`, and returns it:
    ///
    ///     std::vector<int> failed = co_await node.failures().longer_than(failed.size());
    Work<std::vector<int>> longer_than(std::size_t known) const;

    /// Calls `callback` with the list whenever it changes, on the thread that makes progress, until
    /// the node closes. Replaces the previous callback; an empty one removes it.
    void on_change(std::function<void(const std::vector<int>&)> callback) const;

private:
    std::shared_ptr<detail::NodeBody> body_;
};

/// How the world of a node has changed.
struct WorldChange {
    Communicator old_world;
    /// Node::world() from now on. If this process has left, it is a communicator of this process
    /// alone, and the process should end or close its node.
    Communicator new_world;
    bool left_here = false;     // this process has left
    std::vector<int> joined{};  // ranks in the new world
    std::vector<int> left{};    // ranks in the old world that left
    std::vector<int> lost{};    // ranks in the old world that failed
};

/// Carries the state of the application to processes that join.
struct StateHooks {
    /// Called on members when others have joined, inside elastic_checkpoint(): returns the state as
    /// bytes, equal on all members.
    std::function<std::vector<std::byte>()> save{};
    /// Called on a process that has joined, inside its first Node::world(). If a member fails
    /// before the state has arrived, that call throws and `load` is never called: the process is in
    /// the world, but should end unless it can do without the state.
    std::function<void(std::vector<std::byte>)> load{};
    /// How many members send the state, each a part of it; all of them if they are fewer.
    int senders = 1;
};

/// What happens when a member of the world fails.
enum class Recovery : std::uint8_t {
    manual,     // calls fail with Errc::membership_changed, and the program goes on as it likes
    automatic,  // the node also shrinks its world: Node::world() waits for the new one
    abort,      // every rank aborts with the same error
};

}  // namespace nexar
