// Remote procedure calls of a node.

#include <algorithm>

#include "base/try.hpp"
#include "runtime/node_access.hpp"

namespace nexar::detail {

std::shared_ptr<ServedFunction> NodeBody::serve(std::shared_ptr<ServedFunction> function) {
    const NodeAccess access(*this);
    check_not_aborted("serve");
    if (closing_) throw Error(Errc::closed, "the node is closed", {.operation = "serve"});
    if (!rpc_) {
        const bool background = options_.progressing == Progressing::background;
        auto made = std::make_unique<RpcService>(*this, options_.rpc, background);
        made->start().value();
        rpc_ = std::move(made);
    }
    function->node = shared_from_this();
    function->entry.owner = function.get();
    rpc_->add(access->calls(), function).value();
    return function;
}

void NodeBody::respond(engine::InCall& call, Result<Payload> result) noexcept {
    const NodeAccess access(*this, NodeAccess::LockHeld{});
    access->calls().respond(call, std::move(result));
}

void NodeBody::advance_calls(TimePoint now) {
    engine_.advance(now);
    if (rpc_) rpc_->advance(now);
}

bool NodeBody::dispatch_calls(TimePoint now) {
    return rpc_ && rpc_->dispatch(engine_.calls(), now);
}

void NodeBody::close_calls() {
    if (rpc_ && !progress().forked()) rpc_->close();
}

}  // namespace nexar::detail
