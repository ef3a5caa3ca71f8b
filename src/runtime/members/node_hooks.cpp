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
    Listener listener, std::function<void(const std::vector<int>&)> callback) {
    const Guard guard(progress());
    FailureCallback& own = failure_callbacks_.at(static_cast<std::size_t>(listener));
    own.callback = std::move(callback);
    return ++own.generation;
}

std::function<void(const std::vector<int>&)> NodeBody::failure_callback(Listener listener,
                                                                        std::uint64_t generation) {
    const Guard guard(progress());
    const FailureCallback& own = failure_callbacks_.at(static_cast<std::size_t>(listener));
    if (generation != own.generation) return {};
    return own.callback;
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

std::size_t NodeBody::set_recovery(Recovery policy) {
    const Guard guard(progress());
    recovery_ = policy;
    recovering_ = policy == Recovery::automatic && world_is_broken();
    look_at_waiters();
    return world_is_broken() ? 0 : failed_.size();
}

bool NodeBody::world_is_broken() const noexcept {
    return world_ != nullptr && world_.get() != given_up_ && !world_->context().lost.empty();
}

/// True if the world is about to be replaced: this node or another rank knows that it lost a
/// member.
bool NodeBody::expects_recovery() const noexcept {
    if (recovering_) return true;
    if (recovery_ != Recovery::automatic || world_ == nullptr || world_.get() == given_up_ ||
        membership_.evicted()) {
        return false;
    }
    const auto tells_of_loss = [](const engine::CollectiveFailure& failure) {
        return failure.error.code() == Errc::membership_changed;
    };
    const auto& collectives = world_->context().collectives;
    const auto& over = collectives.over;
    return (over && tells_of_loss(*over)) || std::ranges::any_of(collectives.heard, tells_of_loss);
}

bool NodeBody::has_broken_world() {
    const Guard guard(progress());
    return world_is_broken();
}

bool NodeBody::begin_recovery() {
    const Guard guard(progress());
    if (checkpoints_ > 0 || recovery_runs_) return false;
    recovery_runs_ = true;
    return true;
}

std::shared_ptr<OwnedContext> NodeBody::world_to_recover() {
    const Guard guard(progress());
    if (world_is_broken()) return world_;
    recovery_runs_ = false;
    recovering_ = false;
    look_at_waiters();
    return nullptr;
}

void NodeBody::give_up_on(const OwnedContext& world) {
    const Guard guard(progress());
    if (world_.get() == &world) given_up_ = &world;
}

bool NodeBody::recovery_is_due() const noexcept {
    return recovering_ && checkpoints_ == 0 && !recovery_runs_;
}

std::function<void(const std::vector<int>&)> NodeBody::take_recovery(bool wanted) {
    const Guard guard(progress());
    if (!wanted || !recovery_is_due()) return {};
    return failure_callbacks_.at(static_cast<std::size_t>(Listener::recovery)).callback;
}

void NodeBody::begin_checkpoint() {
    const Guard guard(progress());
    ++checkpoints_;
}

std::function<void(const std::vector<int>&)> NodeBody::end_checkpoint() {
    const Guard guard(progress());
    --checkpoints_;
    if (!recovering_) return {};
    return failure_callbacks_.at(static_cast<std::size_t>(Listener::recovery)).callback;
}

std::uint64_t NodeBody::epoch_with_others(const engine::Context& context) {
    const Guard guard(progress());
    return readiness_.epoch_with_others(
        now(), membership_.view(), context, identity_.node, [this](const NodeId& node) {
            const bool waits = !lazy_ && (!overlay_ || overlay_->is_neighbour(node));
            return !waits || (engine_.is_connected(node) && offers_.settled_with(node));
        });
}

}  // namespace nexar::detail
