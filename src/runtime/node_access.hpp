#pragma once

#include <optional>

#include "runtime/node_body.hpp"

namespace nexar::detail {

/// Access to the engine of a node, under the loop's lock. There is no other way to the engine from
/// outside the node, so no caller can forget what must follow: the destructor sends what can be
/// sent and completes the operations that ended, and then releases the lock.
class NodeAccess {
public:
    /// Takes the lock.
    explicit NodeAccess(NodeBody& node) : guard_(std::in_place, node.progress()), node_(&node) {}

    /// For Submission::run_under_lock() and code that it calls: the loop holds the lock already.
    struct LockHeld {};
    NodeAccess(NodeBody& node, LockHeld /*held*/) noexcept : node_(&node) {}

    NodeAccess(const NodeAccess&) = delete;
    NodeAccess& operator=(const NodeAccess&) = delete;
    ~NodeAccess() { node_->settle(node_->now()); }

    engine::Engine& engine() const noexcept { return node_->engine_; }
    engine::Engine* operator->() const noexcept { return &node_->engine_; }

private:
    std::optional<runtime::Progress::Guard> guard_;  // released after settle()
    NodeBody* node_;
};

}  // namespace nexar::detail
