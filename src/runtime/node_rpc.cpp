// Remote procedure calls of a node.

#include <algorithm>

#include "base/try.hpp"
#include "runtime/node_body.hpp"

namespace nexar::detail {

std::shared_ptr<ServedFunction> NodeBody::serve(std::shared_ptr<ServedFunction> function) {
    const runtime::Progress::Guard guard(progress());
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
    rpc_->add(function).value();
    return function;
}

void NodeBody::respond(engine::InCall& call, Result<Payload> result) noexcept {
    const TimePoint at = now();
    engine_.calls().advance(at);
    engine_.calls().respond(call, std::move(result));
    settle(at);
}

void NodeBody::advance_calls(TimePoint now) {
    engine_.advance(now);
    if (rpc_) rpc_->advance(now);
}

bool NodeBody::dispatch_calls(TimePoint now) {
    return rpc_ && rpc_->dispatch(now);
}

void NodeBody::close_calls() {
    if (rpc_ && !progress().forked()) rpc_->close();
}

}  // namespace nexar::detail
