// What the user of a node has set, and what a node remembers for its user.

#include <algorithm>
#include <utility>

#include "runtime/node_access.hpp"

namespace nexar::detail {

using Guard = runtime::Progress::Guard;

StateHooks NodeBody::state_hooks() {
    const Guard guard(progress());
    return state_hooks_;
}

void NodeBody::set_state_hooks(StateHooks hooks) {
    const Guard guard(progress());
    state_senders_ = hooks.save ? static_cast<std::uint32_t>(hooks.senders) : 0;
    state_hooks_ = std::move(hooks);
}

std::uint32_t NodeBody::state_senders() {
    const Guard guard(progress());
    return state_senders_;
}

std::uint32_t NodeBody::take_state_senders() {
    const Guard guard(progress());
    return std::exchange(senders_, 0);
}

std::uint64_t NodeBody::set_failure_callback(
    std::function<void(const std::vector<int>&)> callback) {
    const Guard guard(progress());
    failure_callback_ = std::move(callback);
    return ++callback_generation_;
}

std::function<void(const std::vector<int>&)> NodeBody::failure_callback(std::uint64_t generation) {
    const Guard guard(progress());
    if (generation != callback_generation_) return {};
    return failure_callback_;
}

void NodeBody::set_leaving() {
    const Guard guard(progress());
    leaving_ = true;
}

bool NodeBody::leaving() {
    const Guard guard(progress());
    return leaving_;
}

std::size_t NodeBody::min_world() const {
    return config_ ? static_cast<std::size_t>(config_->integer("min_world")) : 1;
}

void NodeBody::set_recovery(Recovery policy) {
    const Guard guard(progress());
    recovery_ = policy;
}

void NodeBody::end_recovery() {
    const Guard guard(progress());
    recovering_ = false;
    look_at_waiters();
}

std::shared_ptr<OwnedContext> NodeBody::newest_world() {
    const Guard guard(progress());
    return world_;
}

std::uint64_t NodeBody::epoch_with_others(const engine::Context& context) {
    const Guard guard(progress());
    return readiness_.epoch_with_others(
        now(), membership_.view(), context, identity_.node, [this](const NodeId& node) {
            return lazy_ || (engine_.is_connected(node) && offers_.settled_with(node));
        });
}

}  // namespace nexar::detail
