// How a node follows the views of its cluster, and what it tells its user of them.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/settings.hpp"
#include "runtime/collective_profile.hpp"
#include "runtime/members/held_ranks.hpp"
#include "runtime/members/parting.hpp"
#include "runtime/members/succession.hpp"
#include "runtime/node_access.hpp"
#include "runtime/topology_hops.hpp"

namespace nexar::detail {

void NodeBody::begin_membership(TimePoint now, const View& view) {
    const Duration budget = config_ ? config_->duration("failure_budget") : Duration::zero();
    std::uint64_t seed = 0;
    for (const std::byte b : identity_.node.bytes()) {
        seed = seed * 257 + static_cast<std::uint8_t>(b);
    }
    engine_.await_verdicts(budget != Duration::zero());
    membership::Options options{.budget = budget, .random_seed = seed};
    if (neighbourhood_ && neighbourhood_->sparse()) options.neighbours = neighbourhood_->function();
    membership_.begin(now, identity_, view, options);
    engine_.calls().set_own_rank(own_rank());
}

void NodeBody::follow_members(TimePoint now) {
    membership_.turn(now, seed_.get());
    while (const auto decided = membership_.poll_decided()) take_decided(now, *decided);
    if (membership_.evicted()) {
        fail_formation(Error(Errc::evicted,
                             "the members evicted this process before it was connected to all of "
                             "them; join again"));
    }
    if (late_ && !world_) take_new_worlds();
    if (!waiters_.empty()) look_at_waiters();
}

void NodeBody::leave_cluster() {
    const auto may_leave = [this] {
        const bool formed = formed_told_ && !formation_failure_ && !engine_.aborted();
        return !closing_ && formed && membership_.can_leave();
    };
    const auto parting = [&]() -> std::optional<runtime::Parting> {
        const NodeAccess access(*this);
        if (!may_leave()) return std::nullopt;
        return runtime::Parting(access.now(), engine_);
    }();
    if (!parting) return;
    const auto settled = [&] { return !may_leave() || parting->settled(now(), engine_); };
    while (!wait_for(settled, parting->next_look(now()))) {
    }
    TimePoint until{};
    {
        const NodeAccess access(*this);
        if (!may_leave()) return;
        if (seed_) seed_->leave();
        membership_.leave(access.now());
        follow_members(access.now());
        until = access.now() + runtime::Parting::leave_time(overlay_.get());
    }
    wait_for([this] { return membership_.has_left(); }, until);
}

void NodeBody::wait_left(const engine::Context& context, std::span<const Rank> ranks) {
    // A process that cannot leave has lost its majority, which the others notice by themselves.
    constexpr Duration kLeftTime = std::chrono::seconds(5);
    std::vector<NodeId> nodes;
    for (const Rank rank : ranks) {
        const engine::Pair* const pair = context.pairs[rank.value()];
        if (pair != nullptr) nodes.push_back(pair->peer->node);
    }
    const auto gone = [&] {
        return std::ranges::none_of(
            nodes, [this](const NodeId& node) { return membership_.view().find(node) != nullptr; });
    };
    wait_for(gone, now() + kLeftTime);
}

void NodeBody::take_decided(TimePoint now, const membership::Decided& decided) {
    const View& view = decided.view;
    first().set_members(runtime::addresses_of(view.members));
    connect(now, view);
    if (allows_further_links()) {
        offers_.begin(now, view, identity_, runtime::links_of(view.members));
    }
    count_local_ranks(view);
    if (!decided.lost.empty()) {
        for (const Rank rank : decided.lost) failed_.push_back(public_rank(rank));
        recovering_ = recovery_ == Recovery::automatic && world_is_broken();
        tell_failures();
    }
    look_at_waiters();
}

/// Takes the world that other members have made for this node.
void NodeBody::take_new_worlds() {
    const auto offered = engine_.poll_new_world(membership_.view().epoch);
    if (!offered) return;
    const auto next = runtime::accepted(*offered, identity_);
    if (!next || !next->me) {
        NEXAR_LOG_ERROR("a member named a world that does not contain this process");
        return;
    }
    const auto profile = make_profile(runtime::members_of(membership_, next->nodes));
    if (!profile) {
        NEXAR_LOG_ERROR("this process cannot use its new world: {}", profile.error().cause());
        return;
    }
    engine::Context& made = make_context(next->nodes, *next->me, next->origin, *profile);
    made.newcomers_from = newcomers_after(next->nodes);
    world_ = std::make_shared<OwnedContext>(*this, made);
    engine_.calls().set_world(made);
    senders_ = offered->senders;
    look_at_waiters();
}

void NodeBody::set_members(schedule::Profile& profile, std::span<const NodeId> nodes) const {
    runtime::set_members(profile, runtime::members_of(membership_, nodes), neighbourhood());
}

Rank NodeBody::public_own_rank() {
    const runtime::Progress::Guard guard(progress());
    return own_rank();
}

Rank NodeBody::own_rank() const noexcept {
    return membership_.rank_of(identity_.node).value_or(Rank(0));
}

/// True if this node waits for its first world, and nobody is left who could take it in.
bool NodeBody::is_left_behind() const noexcept {
    return late_ && world_ == nullptr && membership_.begun() && !engine_.has_new_world() &&
           runtime::is_eldest(membership_.view(), identity_.node);
}

std::shared_ptr<OwnedContext> NodeBody::world() {
    const auto known = [this] {
        return is_left_behind() || (world_ != nullptr && !expects_recovery());
    };
    const bool in_continuation = [this] {
        const runtime::Progress::Guard guard(progress());
        return progress().in_continuation();
    }();
    const auto ready = [&] { return known() || (in_continuation && recovery_is_due()); };
    const TimePoint deadline = now() + collective_timeout_;
    bool told = wait_for(ready, deadline);
    // The node's own recovery is another continuation, which cannot run before this one returns.
    for (auto recover = take_recovery(in_continuation); recover;
         recover = take_recovery(in_continuation)) {
        recover(failed());
        told = wait_for(ready, deadline);
    }
    if (!told) {
        throw Error(closing() ? Errc::closed : Errc::timed_out,
                    "the other members did not take this process into their world in time: they "
                    "do so in grow() and elastic_checkpoint()",
                    {.operation = "world"});
    }
    const runtime::Progress::Guard guard(progress());
    if (is_left_behind()) {
        throw Error(Errc::membership_changed,
                    "all members that had a world were lost before they took this process in; "
                    "start the program again",
                    {.operation = "world"});
    }
    return world_;
}

void NodeBody::replace_world(const engine::Context& old, std::shared_ptr<OwnedContext> made) {
    // The old one may end here, which takes the lock.
    const std::shared_ptr<OwnedContext> before = [&]() -> std::shared_ptr<OwnedContext> {
        const runtime::Progress::Guard guard(progress());
        if (!world_ || &world_->context() != &old) return nullptr;
        engine_.calls().set_world(made->context());
        std::shared_ptr<OwnedContext> replaced = std::exchange(world_, std::move(made));
        given_up_ = nullptr;
        recovering_ = recovery_ == Recovery::automatic && world_is_broken();
        look_at_waiters();
        return replaced;
    }();
}

bool NodeBody::wait_for(const std::function<bool()>& ready, TimePoint deadline) {
    runtime::Completion completion;
    Waiter waiter{.ready = &ready, .completion = &completion};
    {
        const runtime::Progress::Guard guard(progress());
        if (ready() || closing()) return ready();
        waiters_.push_back(&waiter);
    }
    progress().wait(completion, deadline);
    const runtime::Progress::Guard guard(progress());
    std::erase(waiters_, &waiter);
    return ready();
}

/// Under the lock, after a change: wakes the threads whose condition is true now, or all of them
/// if the node closes.
void NodeBody::look_at_waiters() {
    std::erase_if(waiters_, [this](const Waiter* waiter) {
        if (!closing_ && !(*waiter->ready)()) return false;
        progress().complete(*waiter->completion);
        return true;
    });
}

void NodeBody::wait_view(Epoch epoch) {
    const auto known = [&] { return membership_.view().epoch >= epoch; };
    if (wait_for(known, now() + collective_timeout_)) return;
    throw Error(
        closing() ? Errc::closed : Errc::timed_out,
        fmt::format("this process did not learn the view of epoch {} in time", epoch.value()));
}

NodeId NodeBody::member(Rank rank, const char* operation) {
    const runtime::Progress::Guard guard(progress());
    // The engine knows why operations with a former member fail.
    if (const Member* const member = membership_.find(rank)) return member->node;
    const View& view = membership_.view();
    const bool failed = std::ranges::find(failed_, public_rank(rank)) != failed_.end();
    if (failed || rank < view.next_rank) {
        throw Error(Errc::membership_changed,
                    fmt::format("rank {} {} and is not a member of epoch {}", rank.value(),
                                failed ? "failed" : "has left", view.epoch.value()),
                    {.rank = public_rank(rank), .operation = operation});
    }
    throw Error(Errc::invalid_argument,
                fmt::format("there is no member with rank {}; the highest is {}", rank.value(),
                            view.next_rank.value() - 1),
                {.operation = operation});
}

std::vector<NodeId> NodeBody::nodes_of(std::span<const Rank> members, Epoch epoch) const {
    std::vector<NodeId> nodes;
    const View* const view = membership_.view_of(epoch);
    nodes.reserve(members.size());
    for (const Rank rank : members) {
        const auto is = [&](const Member& member) { return member.rank == rank; };
        const auto found = view == nullptr ? std::vector<Member>::const_iterator{}
                                           : std::ranges::find_if(view->members, is);
        if (view == nullptr || found == view->members.end()) {
            const bool gone = rank < membership_.view().next_rank;
            throw Error(gone ? Errc::membership_changed : Errc::invalid_argument,
                        fmt::format("no member of epoch {} has rank {}{}", epoch.value(),
                                    rank.value(), gone ? " any more" : ""));
        }
        nodes.push_back(found->node);
    }
    return nodes;
}

std::vector<Rank> NodeBody::members_beyond(const engine::Context& context, Epoch epoch) {
    wait_view(epoch);
    const runtime::Progress::Guard guard(progress());
    const View* const view = membership_.view_of(epoch);
    if (view == nullptr) return {};
    return runtime::members_beyond(*view, context, identity_.node);
}

Rank NodeBody::newcomers_after(std::span<const NodeId> nodes) const noexcept {
    return runtime::newcomers_after(membership_, nodes);
}

int NodeBody::member_rank(const NodeId& node) const noexcept {
    const auto rank = membership_.rank_of(node);
    return rank ? public_rank(*rank) : -1;
}

void NodeBody::offer_world(engine::Engine& engine, const Offer& offer,
                           const engine::Context& made) {
    const wire::NewWorld frame = runtime::offer_of(made, offer.members, offer.senders);
    for (const NodeId& node : offer.joiners) {
        if (node != identity_.node) engine.send_new_world(node, frame);
    }
}

View NodeBody::view() {
    const runtime::Progress::Guard guard(progress());
    return membership_.view();
}

std::vector<int> NodeBody::failed() {
    const runtime::Progress::Guard guard(progress());
    return failed_;
}

void NodeBody::start_failures(Task& task) {
    failure_waiters_.push_back(&task);
    if (closing_) return end_failures(Error(Errc::closed, "the node is closed"));
    tell_failures();
}

void NodeBody::tell_failures() {
    for (Task* const task : std::exchange(failure_waiters_, {})) {
        if (failed_.size() <= task->known) {
            failure_waiters_.push_back(task);
            continue;
        }
        task->held = std::make_unique<HeldRanks>(failed_);
        complete(*task);
    }
}

void NodeBody::end_failures(const Error& reason) {
    for (Task* const task : std::exchange(failure_waiters_, {})) {
        task->error = reason;
        complete(*task);
    }
}

/// Completes a task that is not an operation of the engine.
void NodeBody::complete(Task& task) {
    if (task.posting) {
        runtime::Progress::complete_unshared(task.completion);
    } else {
        progress().complete(task.completion);  // from here on the task may be reused
    }
}

void NodeBody::cancel_failures(Task& task) {
    if (std::erase(failure_waiters_, &task) == 0) return;
    task.error = Error(Errc::cancelled, "the wait for failures was cancelled");
    complete(task);
}

}  // namespace nexar::detail
