// Communicators that go on after failures, and that take in new members.

#include <fmt/format.h>

#include <algorithm>
#include <nexar/communicator.hpp>
#include <nexar/membership.hpp>
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
    const engine::AgreeOperation& agreed = *task->agreement;
    return {.lost = agreed.lost,
            .epoch = agreed.epoch,
            .creation = agreed.creation,
            .words = agreed.agreed_words};
}

/// The ranks of a communicator that are neither lost nor excluded.
std::vector<std::uint32_t> others(std::size_t size, const std::vector<Rank>& lost,
                                  const std::vector<Rank>& excluded) {
    std::vector<std::uint32_t> ranks;
    ranks.reserve(size);
    for (std::uint32_t rank = 0; rank < size; ++rank) {
        const auto is = [&](Rank one) { return one.value() == rank; };
        if (!std::ranges::any_of(lost, is) && !std::ranges::any_of(excluded, is)) {
            ranks.push_back(rank);
        }
    }
    return ranks;
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

std::uint32_t senders_among(std::size_t kept, std::uint32_t wanted) {
    return static_cast<std::uint32_t>(std::min<std::size_t>(kept, wanted));
}

Made rebuilt(const Body& body, const Outcome& agreed, const std::vector<Rank>& excluded,
             const Added& added) {
    NodeBody& node = *body->node;
    node.wait_view(agreed.epoch);
    Made made;
    std::vector<NodeId> joiners;
    std::shared_ptr<OwnedContext> owned;
    {
        const NodeAccess access(node);
        node.check_not_aborted("making a communicator");
        engine::Context& parent = *body->context;
        const auto ranks = others(parent.pairs.size(), agreed.lost, excluded);
        std::vector<NodeId> nodes;
        nodes.reserve(ranks.size() + added.members.size());
        for (const std::uint32_t rank : ranks) {
            const engine::Pair* const pair = parent.pairs[rank];
            nodes.push_back(pair == nullptr ? node.id() : pair->peer->node);
        }
        const std::uint32_t senders = senders_among(ranks.size(), added.senders);
        joiners = node.nodes_of(added.members, agreed.epoch);
        nodes.insert(nodes.end(), joiners.begin(), joiners.end());
        if (nodes.size() < node.min_world()) {
            throw Error(Errc::membership_changed,
                        fmt::format("only {} ranks are left, and the setting min_world is {}",
                                    nodes.size(), node.min_world()));
        }
        // Groups that exclude each other agree on the same numbers.
        std::uint64_t colour = excluded.size();
        for (const Rank rank : excluded) colour = mixed(colour ^ rank.value());
        made.excluded = std::ranges::find(nodes, node.id()) == nodes.end();
        if (made.excluded) {
            nodes = {node.id()};
            joiners.clear();
            colour = mixed(~colour ^ parent.me.value());
        }
        for (std::size_t i = nodes.size() - joiners.size(); i < nodes.size(); ++i) {
            made.joined.push_back(static_cast<int>(i));
        }
        const auto me = std::ranges::find(nodes, node.id());
        const wire::ContextOrigin origin{.parent = parent.id,
                                         .creation = agreed.creation,
                                         .colour = colour,
                                         .epoch = agreed.epoch};
        parent.creations = std::max(parent.creations, agreed.creation + 1);
        schedule::Profile profile = parent.collectives.profile;
        profile.links = node.links_among(nodes);
        profile.memory.slot_bytes = 0;  // a communicator has its own
        profile.memory.buffer_bytes = 0;
        engine::Context& context =
            node.make_context(nodes, static_cast<std::size_t>(me - nodes.begin()), origin, profile);
        owned = std::make_shared<OwnedContext>(node, context);
        node.offer_world(access.engine(),
                         {.joiners = joiners, .members = nodes, .senders = senders}, context);
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
    return Communicator(detail::rebuilt(body(), agreed, {}, {}).body);
}

Communicator Communicator::rebuilt_excluding(std::span<const std::int64_t> ranks) const {
    const auto excluded = checked_ranks(*body(), ranks, "rebuild_excluding");
    const auto agreed = detail::agree_on(body(),
                                         {.what = wire::AgreementKind::exclude,
                                          .excluded = excluded,
                                          .fingerprint = fingerprint_of(excluded)},
                                         "rebuild_excluding");
    return Communicator(detail::rebuilt(body(), agreed, excluded, {}).body);
}

Communicator Communicator::grow() const {
    const auto agreed = detail::agree_on(body(), {.what = wire::AgreementKind::grow}, "grow");
    const auto added = body()->node->members_beyond(*body()->context, agreed.epoch);
    // Only a checkpoint sends the application's state.
    return Communicator(detail::rebuilt(body(), agreed, {}, {.members = added}).body);
}

Communicator Communicator::rebuilt_adding(std::span<const std::int64_t> members) const {
    std::vector<Rank> added;
    added.reserve(members.size());
    for (const std::int64_t member : members) {
        if (member < 0 || member > wire::kMaxRank) {
            throw Error(Errc::invalid_argument,
                        fmt::format("there is no member with rank {}", member),
                        {.operation = "rebuild_adding"});
        }
        added.emplace_back(static_cast<std::uint32_t>(member));
    }
    const auto agreed = detail::agree_on(
        body(), {.what = wire::AgreementKind::grow, .fingerprint = fingerprint_of(added)},
        "rebuild_adding");
    return Communicator(detail::rebuilt(body(), agreed, {}, {.members = added}).body);
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
