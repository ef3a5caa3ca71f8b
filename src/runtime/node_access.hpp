#pragma once

#include <optional>

#include "runtime/node_body.hpp"

namespace nexar::detail {

/// Access to the engine of a node, under the loop's lock. There is no other way to the engine from
/// outside the node, so no caller can forget what must precede and follow: the constructor tells
/// the engine the time; the destructor sends what can be sent, completes the operations that ended,
/// and then releases the lock.
class NodeAccess {
public:
    /// Takes the lock.
    explicit NodeAccess(NodeBody& node)
        : guard_(std::in_place, node.progress()), node_(&node), now_(node.now()) {
        node_->engine_.advance(now_);
    }

    /// For Submission::run_under_lock() and code that it calls: the loop holds the lock already.
    struct LockHeld {};
    NodeAccess(NodeBody& node, LockHeld /*held*/) : node_(&node), now_(node.now()) {
        node_->engine_.advance(now_);
    }

    NodeAccess(const NodeAccess&) = delete;
    NodeAccess& operator=(const NodeAccess&) = delete;
    ~NodeAccess() { node_->settle(now_); }

    /// The time of this access; a later one must not be used inside it, since the links' time never
    /// goes back.
    TimePoint now() const noexcept { return now_; }

    engine::Engine& engine() const noexcept { return node_->engine_; }
    engine::Engine* operator->() const noexcept { return &node_->engine_; }

private:
    std::optional<runtime::Progress::Guard> guard_;  // released after settle()
    NodeBody* node_;
    TimePoint now_;
};

}  // namespace nexar::detail
