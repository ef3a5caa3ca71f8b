// What a node offers its user for members that come and go.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nexar/node.hpp>
#include <numeric>
#include <utility>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "runtime/members/held_ranks.hpp"
#include "runtime/members/membership_calls.hpp"

namespace nexar {

namespace detail {

namespace {

/// The tags of the messages that carry the application's state.
constexpr std::uint64_t kSizeTag = 0;
constexpr std::uint64_t kPartTag = 1;

Body handle(const std::shared_ptr<NodeBody>& node, std::shared_ptr<OwnedContext> context) {
    return std::make_shared<CommunicatorBody>(node, std::move(context));
}

/// The part of `bytes` bytes of state that one of several senders sends.
struct Part {
    std::size_t begin = 0;
    std::size_t end = 0;
};
Part part_of(std::size_t bytes, std::size_t sender, std::size_t senders) {
    return {.begin = bytes / senders * sender + std::min(sender, bytes % senders),
            .end = bytes / senders * (sender + 1) + std::min(sender + 1, bytes % senders)};
}

void send_state(const Communicator& world, const std::vector<int>& joined, const StateHooks& hooks,
                std::size_t senders) {
    const Communicator lane = world.duplicate();
    const auto me = static_cast<std::size_t>(world.rank());
    if (me >= senders) return;
    const std::vector<std::byte> state = hooks.save ? hooks.save() : std::vector<std::byte>{};
    const std::uint64_t size = state.size();
    const Part part = part_of(state.size(), me, senders);
    const auto bytes = std::span(state).subspan(part.begin, part.end - part.begin);
    std::vector<Work<>> works;
    works.reserve(2 * joined.size());
    for (const int rank : joined) {
        works.push_back(lane.send(size, rank, kSizeTag));
        works.push_back(lane.send(bytes, rank, kPartTag));
    }
    for (Work<>& work : works) work.wait();
}

std::vector<std::byte> receive_state(const Communicator& world, std::size_t senders) {
    const Communicator lane = world.duplicate();
    std::vector<std::byte> state;
    for (std::size_t sender = 0; sender < senders; ++sender) {
        const int from = static_cast<int>(sender);
        const auto size = static_cast<std::size_t>(lane.recv<std::uint64_t>(from, kSizeTag).wait());
        if (sender == 0) state.resize(size);
        if (size != state.size()) {
            throw Error(Errc::invalid_argument,
                        fmt::format("rank 0 has {} bytes of state, but rank {} has {}; "
                                    "StateHooks::save must return the same on all members",
                                    state.size(), sender, size),
                        {.rank = from, .operation = "world"});
        }
        const Part part = part_of(size, sender, senders);
        lane.recv(std::span(state).subspan(part.begin, part.end - part.begin), from, kPartTag)
            .wait();
    }
    return state;
}

Result<std::vector<int>> take_ranks(Task& task) {
    return static_cast<HeldRanks&>(*task.held).ranks;
}

}  // namespace

void welcome_joiners(const Made& made) {
    if (made.joined.empty()) return;
    const Communicator world(made.body);
    NodeBody& node = *made.body->node;
    const std::size_t kept = static_cast<std::size_t>(world.size()) - made.joined.size();
    const std::size_t senders = std::min<std::size_t>(node.state_senders(), kept);
    if (senders != 0) send_state(world, made.joined, node.state_hooks(), senders);
}

}  // namespace detail

using detail::Body;

Communicator Node::world() const {
    Communicator world(detail::handle(body_, body_->world()));
    if (const std::uint32_t senders = body_->take_state_senders(); senders != 0) {
        std::vector<std::byte> state = detail::receive_state(world, senders);
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

/// Calls `callback` for every change after the first `known` failures, until the node closes or
/// `body` has another callback.
void follow_failures(const std::shared_ptr<detail::NodeBody>& body, std::size_t known,
                     std::uint64_t generation) {
    // A pending task keeps the node; closing the node ends the task.
    Failures(body).longer_than(known).then(
        [body = std::weak_ptr(body), generation](const Result<std::vector<int>>& failed) {
            const auto node = body.lock();
            if (!failed || !node) return;
            const Callback callback = node->failure_callback(generation);
            if (!callback) return;
            callback(*failed);
            follow_failures(node, failed->size(), generation);
        });
}

}  // namespace

void Failures::on_change(Callback callback) const {
    const bool any = static_cast<bool>(callback);
    const std::uint64_t generation = body_->set_failure_callback(std::move(callback));
    if (any) follow_failures(body_, body_->failed().size(), generation);
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

std::optional<WorldChange> Node::elastic_checkpoint() const {
    const Body old = detail::handle(body_, body_->world());
    const Communicator world(old);
    // One small all-reduce tells everyone whether all have links to a new member, or anybody
    // leaves. A new member that not all can reach yet would make the others wait.
    const std::array<std::uint64_t, 2> mine{body_->epoch_with_others(*old->context),
                                            body_->leaving() ? 0U : 1U};
    std::array<std::uint64_t, 2> least{};
    world.all_reduce(mine, least, min).wait();
    if (least[0] == 0 && least[1] != 0) return std::nullopt;
    std::vector<std::uint8_t> leaving(static_cast<std::size_t>(world.size()));
    const std::array<std::uint8_t, 1> own{body_->leaving() ? std::uint8_t{1} : std::uint8_t{0}};
    world.all_gather(own, leaving).wait();
    std::vector<Rank> leavers;
    for (std::uint32_t rank = 0; rank < leaving.size(); ++rank) {
        if (leaving[rank] != 0) leavers.emplace_back(rank);
    }
    const detail::Outcome agreed =
        detail::agree_on(old,
                         {.what = wire::AgreementKind::checkpoint,
                          .fingerprint = leavers.size(),
                          .plan = {.excluded = leavers, .grows = true, .sends_state = true}},
                         "elastic_checkpoint");
    const detail::Made made = detail::rebuilt(old, agreed);
    // A rank that leaves is alone in its new world.
    const auto alone = made.body ? std::nullopt : world.subgroup(std::array{world.rank()});
    WorldChange change{.old_world = world,
                       .new_world = alone ? *alone : Communicator(made.body),
                       .left_here = made.body == nullptr,
                       .joined = made.joined};
    for (const Rank rank : leavers) change.left.push_back(public_rank(rank));
    for (const Rank rank : agreed.lost) change.lost.push_back(public_rank(rank));
    if (made.body) detail::welcome_joiners(made);
    return change;
}

namespace {

/// Shrinks the world after failures, on the thread that makes progress.
void shrink_world(const std::shared_ptr<detail::NodeBody>& body,
                  const std::function<void(const WorldChange&)>& on_change) {
    const auto context = body->newest_world();
    if (!context) return;
    const Body old = detail::handle(body, context);
    const Communicator world(old);
    try {
        const auto agreed = detail::agree_to_shrink(old);
        if (agreed.lost.empty() && !agreed.resumed) return body->end_recovery();
        const detail::Made made = detail::rebuilt(old, agreed);
        if (!made.body) return body->end_recovery();
        if (agreed.plan.sends_state) detail::welcome_joiners(made);
        WorldChange change{.old_world = world, .new_world = Communicator(made.body)};
        for (const Rank rank : agreed.lost) change.lost.push_back(public_rank(rank));
        if (on_change) on_change(change);
    } catch (const Error& error) {
        NEXAR_LOG_ERROR("the world could not be shrunk: {}", error.what());
        body->end_recovery();
    }
}

void abort_after_failure(const std::shared_ptr<detail::NodeBody>& body,
                         const std::vector<int>& failed) {
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
    body_->set_recovery(policy);
    if (policy == Recovery::manual) return failures().on_change({});
    failures().on_change([body = std::weak_ptr(body_), policy,
                          on_change = std::move(on_change)](const std::vector<int>& failed) {
        const auto node = body.lock();
        if (!node) return;
        if (policy == Recovery::abort) return abort_after_failure(node, failed);
        shrink_world(node, on_change);
    });
}

}  // namespace nexar
