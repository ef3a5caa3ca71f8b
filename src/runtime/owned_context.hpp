#pragma once

#include "engine/context.hpp"

namespace nexar::detail {

class NodeBody;

/// A context of a node's engine. It ends with this object, which the handles of the communicator
/// share; the node keeps that of the newest world.
class OwnedContext {
public:
    OwnedContext(NodeBody& node, engine::Context& context) noexcept
        : node_(&node), context_(&context) {}
    ~OwnedContext();
    OwnedContext(const OwnedContext&) = delete;
    OwnedContext& operator=(const OwnedContext&) = delete;

    engine::Context& context() const noexcept { return *context_; }
    /// The node is being destroyed, and the context with it.
    void disown() noexcept { node_ = nullptr; }

private:
    NodeBody* node_;
    engine::Context* context_;
};

}  // namespace nexar::detail
