// What a node offers its user for members that come and go.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nexar/node.hpp>
#include <utility>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "runtime/members/held_ranks.hpp"
#include "runtime/members/membership_calls.hpp"
#include "runtime/members/node_state.hpp"

namespace nexar {

namespace detail {

namespace {

Body handle(const std::shared_ptr<NodeBody>& node, std::shared_ptr<OwnedContext> context) {
    return std::make_shared<CommunicatorBody>(node, std::move(context));
}

Result<std::vector<int>> take_ranks(Task& task) {
    return static_cast<HeldRanks&>(*task.held).ranks;
}

}  // namespace

}  // namespace detail

using detail::Body;

Communicator Node::world() const {
    Communicator world(detail::handle(body_, body_->world()));
    if (const std::uint32_t senders = body_->take_state_senders(); senders != 0) {
        std::vector<std::byte> state =
            detail::receive_state(world, senders, body_->collective_timeout());
        if (const StateHooks hooks = body_->state_hooks(); hooks.load) hooks.load(std::move(state));
    }
    return world;
}

int Node::rank() const {
    const runtime::Progress::Guard guard(body_->progress());
    return public_rank(body_->own_rank());
}

std::vector<int> Node::members() const {
    const View view = body_->view();
    std::vector<int> ranks;
    ranks.reserve(view.members.size());
    for (const Member& member : view.members) ranks.push_back(public_rank(member.rank));
    return ranks;
}

std::uint64_t Node::epoch() const {
    return body_->view().epoch.value();
}

std::vector<int> Failures::list() const {
    return body_->failed();
}

Work<std::vector<int>> Failures::longer_than(std::size_t known) const {
    detail::TaskOwner task = body_->make_task(std::make_shared<detail::CommunicatorBody>(body_));
    task->what = detail::Task::What::failures;
    task->known = known;
    body_->progress().post(*task);
    return Work<std::vector<int>>(std::move(task), &detail::take_ranks);
}

namespace {

using Callback = std::function<void(const std::vector<int>&)>;

using Listener = detail::NodeBody::Listener;

/// Calls the callback of `listener` for every change after the first `known` failures, until the
/// node closes or the listener has another callback.
void follow_failures(const std::shared_ptr<detail::NodeBody>& body, Listener listener,
                     std::size_t known, std::uint64_t generation) {
    // A pending task keeps the node; closing the node ends the task.
    Failures(body).longer_than(known).then(
        [body = std::weak_ptr(body), listener, generation](const Result<std::vector<int>>& failed) {
            const auto node = body.lock();
            if (!failed || !node) return;
            const Callback callback = node->failure_callback(listener, generation);
            if (!callback) return;
            callback(*failed);
            follow_failures(node, listener, failed->size(), generation);
        });
}

}  // namespace

void Failures::on_change(Callback callback) const {
    const bool any = static_cast<bool>(callback);
    // Looks first: a failure from here on is a change.
    const std::size_t known = body_->failed().size();
    const auto generation = body_->set_failure_callback(Listener::user, std::move(callback));
    if (any) follow_failures(body_, Listener::user, known, generation);
}

void Node::leave() const {
    body_->set_leaving();
}

void Node::on_join(StateHooks hooks) const {
    if (hooks.senders < 1) {
        throw Error(
            Errc::invalid_argument,
            fmt::format("{} members cannot send the state; it takes at least 1", hooks.senders),
            {.operation = "on_join"});
    }
    body_->set_state_hooks(std::move(hooks));
}

namespace {

/// While it lives, the node's own recovery leaves the world alone: the checkpoint may replace it.
class CheckpointMark {
public:
    explicit CheckpointMark(detail::NodeBody& node) : node_(node) { node_.begin_checkpoint(); }
    CheckpointMark(const CheckpointMark&) = delete;
    CheckpointMark& operator=(const CheckpointMark&) = delete;
    ~CheckpointMark() {
        if (const auto recover = node_.end_checkpoint()) recover(node_.failed());
    }

private:
    detail::NodeBody& node_;
};

/// The ranks that leave. Collective.
std::vector<Rank> gather_leavers(const Communicator& world, bool leaving) {
    std::vector<std::uint8_t> all(static_cast<std::size_t>(world.size()));
    const std::array<std::uint8_t, 1> own{leaving ? std::uint8_t{1} : std::uint8_t{0}};
    world.all_gather(own, all).wait();
    std::vector<Rank> leavers;
    for (std::uint32_t rank = 0; rank < all.size(); ++rank) {
        if (all[rank] != 0) leavers.emplace_back(rank);
    }
    return leavers;
}

struct Change {
    WorldChange told;
    detail::Made made;
};

/// Makes the world that the ranks agree on; nullopt if there is nothing to change.
std::optional<Change> change_world(const std::shared_ptr<detail::NodeBody>& node, const Body& old) {
    const CheckpointMark mark(*node);
    const Communicator world(old);
    // One small all-reduce tells everyone whether all have links to a new member, or anybody
    // leaves. A new member that not all can reach yet would make the others wait.
    const std::array<std::uint64_t, 2> mine{node->epoch_with_others(*old->context),
                                            node->leaving() ? 0U : 1U};
    std::array<std::uint64_t, 2> least{};
    world.all_reduce(mine, least, min).wait();
    if (least[0] == 0 && least[1] != 0) return std::nullopt;
    const std::vector<Rank> leavers = gather_leavers(world, node->leaving());
    const detail::Outcome agreed =
        detail::agree_on(old,
                         {.what = wire::AgreementKind::checkpoint,
                          .fingerprint = leavers.size(),
                          .plan = {.excluded = leavers, .grows = true, .sends_state = true}},
                         "elastic_checkpoint");
    const detail::Made made = detail::rebuilt(old, agreed);
    // Otherwise the next checkpoint would take in those that have left as new members.
    if (made.excluded) {
        node->leave_cluster();
    } else {
        node->wait_left(*old->context, leavers);
    }
    WorldChange change{.old_world = world,
                       .new_world = Communicator(made.body),
                       .left_here = made.excluded,
                       .joined = made.joined};
    for (const Rank rank : leavers) change.left.push_back(public_rank(rank));
    for (const Rank rank : agreed.lost) change.lost.push_back(public_rank(rank));
    return Change{.told = std::move(change), .made = made};
}

}  // namespace

std::optional<WorldChange> Node::elastic_checkpoint() const {
    const auto change = change_world(body_, detail::handle(body_, body_->world()));
    if (!change) return std::nullopt;
    detail::welcome_joiners(change->made);
    return change->told;
}

namespace {

/// Shrinks the world until it contains no failed member, on the thread that makes progress.
void shrink_world(const std::shared_ptr<detail::NodeBody>& body,
                  const std::function<void(const WorldChange&)>& on_change) {
    if (!body->begin_recovery()) return;
    while (const auto context = body->world_to_recover()) {
        const Body old = detail::handle(body, context);
        std::optional<WorldChange> change;
        try {
            const auto agreed = detail::agree_to_shrink(old);
            const detail::Made made = detail::rebuilt(old, agreed);
            detail::welcome_joiners(made);
            change.emplace(WorldChange{.old_world = Communicator(old),
                                       .new_world = Communicator(made.body),
                                       .left_here = made.excluded,
                                       .joined = made.joined});
            for (const Rank rank : agreed.lost) change->lost.push_back(public_rank(rank));
        } catch (const Error& error) {
            NEXAR_LOG_ERROR("the world could not be shrunk: {}", error.what());
            body->give_up_on(*context);
            continue;
        }
        if (on_change) on_change(*change);
    }
}

void abort_after_failure(const std::shared_ptr<detail::NodeBody>& body,
                         const std::vector<int>& failed) {
    if (!body->has_broken_world()) return;  // the failed member was not in the world yet
    const View view = body->view();
    // The error names the rank that aborted, so only one does.
    if (view.members.empty() || view.members.front().node != body->id()) return;
    body->abort(1, fmt::format("rank {} failed in epoch {}, and the recovery policy is abort",
                               failed.back(), view.epoch.value()));
}

}  // namespace

void detail::NodeBody::follow_recovery_setting(const Node& node) const {
    const std::string_view choice = config_ ? config_->choice("recovery") : kRecoveries[0];
    const auto index = std::ranges::find(kRecoveries, choice) - kRecoveries.begin();
    if (index != 0) node.recover(static_cast<Recovery>(index));
}

void Node::recover(Recovery policy, std::function<void(const WorldChange&)> on_change) const {
    const std::size_t known = body_->set_recovery(policy);
    Callback callback;
    if (policy != Recovery::manual) {
        callback = [body = std::weak_ptr(body_), policy,
                    on_change = std::move(on_change)](const std::vector<int>& failed) {
            const auto node = body.lock();
            if (!node) return;
            if (policy == Recovery::abort) return abort_after_failure(node, failed);
            shrink_world(node, on_change);
        };
    }
    const auto generation = body_->set_failure_callback(Listener::recovery, std::move(callback));
    if (policy != Recovery::manual) {
        follow_failures(body_, Listener::recovery, known, generation);
    }
}

}  // namespace nexar
