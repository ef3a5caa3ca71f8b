// Communicators that go on after failures, and that take in new members.

#include <fmt/format.h>

#include <algorithm>
#include <nexar/communicator.hpp>
#include <nexar/membership.hpp>
#include <optional>
#include <utility>

#include "base/mix.hpp"
#include "runtime/members/membership_calls.hpp"
#include "runtime/node_access.hpp"
#include "runtime/task.hpp"

namespace nexar {

using detail::Body;
using detail::Task;
using detail::TaskOwner;

namespace detail {

TaskOwner start_agreement(const Body& body, const AgreementTerms& terms) {
    TaskOwner task = body->node->make_task(body);
    task->what = Task::What::agreement;
    if (!task->agreement) task->agreement = std::make_unique<engine::AgreeOperation>();
    engine::AgreeOperation& operation = *task->agreement;
    operation.owner = task.get();
    operation.what = terms.what;
    operation.flags = terms.flags;
    operation.excluded = terms.excluded;
    operation.fingerprint = terms.fingerprint;
    operation.words = terms.words;
    operation.plan = terms.plan;
    operation.timeout = body->node->collective_timeout();
    operation.newest = body->node->view().epoch;
    body->node->progress().post(*task);
    return task;
}

namespace {

std::vector<int> public_ranks(const std::vector<Rank>& ranks) {
    std::vector<int> all;
    all.reserve(ranks.size());
    for (const Rank rank : ranks) all.push_back(public_rank(rank));
    return all;
}

Result<Agreed> take_agreed(Task& task) {
    return Agreed{.flags = task.agreement->agreed_flags,
                  .lost = public_ranks(task.agreement->lost)};
}

/// Waits for the agreement and returns its outcome.
Outcome outcome_of(TaskOwner task, const char* operation) {
    wait(*task, nullptr);
    if (const auto& failure = error(*task)) throw failure->within({.operation = operation});
    return runtime::outcome_of(*task->agreement);
}

}  // namespace

Outcome agree_on(const Body& body, const AgreementTerms& terms, const char* operation) {
    return outcome_of(start_agreement(body, terms), operation);
}

Outcome agree_to_shrink(const Body& body) {
    // Another rank may still be in a call that the loss has not ended there; then all try again.
    constexpr int kMostAttempts = 16;
    for (int attempt = 1;; ++attempt) {
        try {
            return agree_on(body, {.what = wire::AgreementKind::shrink}, "shrink");
        } catch (const Error& error) {
            if (error.code() != Errc::membership_changed || attempt == kMostAttempts) throw;
        }
    }
}

Made rebuilt(const Body& body, const Outcome& agreed) {
    NodeBody& node = *body->node;
    node.wait_view(agreed.epoch);
    const std::vector<Rank> added =
        agreed.plan.grows ? node.members_beyond(*body->context, agreed.epoch) : agreed.plan.added;
    // Only a checkpoint sends the application's state.
    const std::uint32_t senders = agreed.plan.sends_state ? node.state_senders() : 0;
    Made made;
    std::shared_ptr<OwnedContext> owned;
    {
        const NodeAccess access(node);
        node.check_not_aborted("making a communicator");
        engine::Context& parent = *body->context;
        runtime::Successor next =
            runtime::successor_of(parent, node.id(), agreed, node.nodes_of(added, agreed.epoch));
        const bool all_leave = next.nodes.empty();
        if (next.nodes.size() < node.min_world() && !all_leave) {
            throw Error(Errc::membership_changed,
                        fmt::format("only {} ranks are left, and the setting min_world is {}",
                                    next.nodes.size(), node.min_world()));
        }
        parent.creations = std::max(parent.creations, agreed.creation + 1);
        made.excluded = !next.me;
        const std::size_t me = next.me.value_or(0);
        if (made.excluded) {
            next.nodes = {node.id()};
            next.first_joiner = 1;
            next.origin.colour = mixed(~next.origin.colour ^ parent.me.value());
        }
        for (std::size_t i = next.first_joiner; i < next.nodes.size(); ++i) {
            made.joined.push_back(static_cast<int>(i));
        }
        made.senders = std::min<std::size_t>(senders, next.first_joiner);
        schedule::Profile profile = parent.collectives.profile;
        node.set_members(profile, next.nodes);
        profile.memory.slot_bytes = 0;  // a communicator has its own
        profile.memory.buffer_bytes = 0;
        engine::Context& context = node.make_context(next.nodes, me, next.origin, profile);
        context.newcomers_from =
            made.joined.empty() ? parent.newcomers_from : node.newcomers_after(next.nodes);
        owned = std::make_shared<OwnedContext>(node, context);
        node.offer_world(access.engine(),
                         {.joiners = next.joiners(),
                          .members = next.nodes,
                          .senders = static_cast<std::uint32_t>(made.senders)},
                         context);
    }
    made.body = std::make_shared<CommunicatorBody>(body->node, owned);
    node.replace_world(*body->context, owned);
    return made;
}

}  // namespace detail

namespace {

std::vector<Rank> checked_ranks(const detail::CommunicatorBody& body,
                                std::span<const std::int64_t> ranks, const char* operation) {
    const auto size = static_cast<std::int64_t>(body.context->pairs.size());
    std::vector<Rank> checked;
    checked.reserve(ranks.size());
    for (const std::int64_t rank : ranks) {
        if (rank < 0 || rank >= size || rank == body.context->me.value()) {
            throw Error(Errc::invalid_argument,
                        fmt::format("rank {} cannot be excluded: the ranks of this communicator "
                                    "are 0 to {}, and the caller cannot exclude itself",
                                    rank, size - 1),
                        {.operation = operation});
        }
        checked.emplace_back(static_cast<std::uint32_t>(rank));
    }
    std::ranges::sort(checked);
    const auto same = std::ranges::unique(checked);
    checked.erase(same.begin(), same.end());
    return checked;
}

/// `own`: the ranks in the cluster of those that are in the communicator.
std::vector<Rank> checked_additions(const engine::Context& context, const std::vector<int>& own,
                                    std::span<const std::int64_t> members) {
    std::vector<Rank> added;
    added.reserve(members.size());
    const auto refuse = [](const std::string& why, std::optional<int> rank = {}) {
        throw Error(Errc::invalid_argument, why, {.rank = rank, .operation = "rebuild_adding"});
    };
    for (const std::int64_t member : members) {
        if (member < 0 || member > wire::kMaxRank) {
            refuse(fmt::format("there is no member with rank {}", member));
        }
        const Rank rank(static_cast<std::uint32_t>(member));
        if (std::ranges::find(own, public_rank(rank)) != own.end()) {
            refuse(fmt::format("member {} is in this communicator already", member));
        }
        // A process that has a world takes no other one. All ranks of the communicator know the
        // same number, so none of them waits for the others in an agreement.
        if (rank < context.newcomers_from) {
            refuse(fmt::format("member {} cannot be added: it was left out of this communicator, "
                               "or passed over when a later member was added; let its process "
                               "close its node and join again, and add its new rank",
                               member),
                   public_rank(rank));
        }
        if (std::ranges::find(added, rank) != added.end()) {
            refuse(fmt::format("member {} is named twice", member));
        }
        added.push_back(rank);
    }
    return added;
}

std::uint64_t fingerprint_of(std::span<const Rank> ranks) {
    std::uint64_t all = ranks.size();
    for (const Rank rank : ranks) all = mixed(all ^ rank.value());
    return all;
}

}  // namespace

void Communicator::revoke() const {
    const detail::NodeAccess access(*body()->node);
    body()->node->check_not_aborted("revoke");
    access->revoke(*body()->context);
}

Work<Agreed> Communicator::agree(std::uint64_t flags) const {
    return Work<Agreed>(detail::start_agreement(body(), {.flags = flags}), &detail::take_agreed);
}

Communicator Communicator::shrink() const {
    const auto agreed = detail::agree_to_shrink(body());
    const detail::Made made = detail::rebuilt(body(), agreed);
    if (made.excluded) {
        throw Error(Errc::revoked,
                    "an earlier call, which this one completes, made a communicator without this "
                    "rank",
                    {.operation = "shrink"});
    }
    detail::welcome_joiners(made);
    return Communicator(made.body);
}

Communicator Communicator::rebuilt_excluding(std::span<const std::int64_t> ranks) const {
    const auto excluded = checked_ranks(*body(), ranks, "rebuild_excluding");
    const auto agreed = detail::agree_on(body(),
                                         {.what = wire::AgreementKind::exclude,
                                          .excluded = excluded,
                                          .fingerprint = fingerprint_of(excluded),
                                          .plan = {.excluded = excluded}},
                                         "rebuild_excluding");
    return Communicator(detail::rebuilt(body(), agreed).body);
}

Communicator Communicator::grow() const {
    const auto agreed = detail::agree_on(
        body(), {.what = wire::AgreementKind::grow, .plan = {.grows = true}}, "grow");
    return Communicator(detail::rebuilt(body(), agreed).body);
}

Communicator Communicator::rebuilt_adding(std::span<const std::int64_t> members) const {
    const std::vector<Rank> added = checked_additions(*body()->context, this->members(), members);
    const auto agreed = detail::agree_on(body(),
                                         {.what = wire::AgreementKind::grow,
                                          .fingerprint = fingerprint_of(added),
                                          .plan = {.added = added}},
                                         "rebuild_adding");
    return Communicator(detail::rebuilt(body(), agreed).body);
}

std::vector<int> Communicator::members() const {
    detail::NodeBody& node = *body()->node;
    const runtime::Progress::Guard guard(node.progress());
    std::vector<int> all;
    all.reserve(body()->context->pairs.size());
    for (const engine::Pair* const pair : body()->context->pairs) {
        all.push_back(node.member_rank(pair == nullptr ? node.id() : pair->peer->node));
    }
    return all;
}

}  // namespace nexar
