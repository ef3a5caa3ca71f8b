#include "runtime/members/succession.hpp"

#include <algorithm>
#include <utility>

#include "base/mix.hpp"
#include "engine/engine.hpp"
#include "engine/peer.hpp"
#include "runtime/context_id.hpp"

namespace nexar::runtime {

namespace {

/// How long a checkpoint waits for links to a member that has joined.
constexpr Duration kLinkTime = std::chrono::seconds(5);

bool names(std::span<const Rank> ranks, std::uint32_t rank) noexcept {
    return std::ranges::any_of(ranks, [&](Rank one) { return one.value() == rank; });
}

}  // namespace

bool contains(const engine::Context& context, const NodeId& self, const NodeId& node) noexcept {
    return node == self || std::ranges::any_of(context.pairs, [&](const engine::Pair* pair) {
               return pair != nullptr && pair->peer->node == node;
           });
}

bool is_newcomer(const engine::Context& context, const NodeId& self,
                 const Member& member) noexcept {
    return member.rank >= context.newcomers_from && !contains(context, self, member.node);
}

Rank newcomers_after(const NodeMembers& members, std::span<const NodeId> nodes) noexcept {
    std::uint32_t next = 0;
    for (const NodeId& node : nodes) {
        if (const auto rank = members.rank_of(node)) next = std::max(next, rank->value() + 1);
    }
    return Rank(next);
}

std::vector<Rank> members_beyond(const View& view, const engine::Context& context,
                                 const NodeId& self) {
    std::vector<Rank> beyond;
    for (const Member& member : view.members) {
        if (is_newcomer(context, self, member)) beyond.push_back(member.rank);
    }
    return beyond;
}

Outcome outcome_of(const engine::AgreeOperation& agreed) {
    return {.lost = agreed.lost,
            .epoch = agreed.epoch,
            .creation = agreed.creation,
            .words = agreed.agreed_words,
            .plan = agreed.plan,
            .resumed = agreed.resumed};
}

engine::Context& add_communicator(engine::Engine& engine, const ClusterId& cluster,
                                  std::span<const NodeId> nodes, std::size_t me,
                                  const wire::ContextOrigin& origin,
                                  const schedule::Profile& profile) {
    engine::Context& made = engine.add_context(context_id(cluster, origin), nodes,
                                               Rank(static_cast<std::uint32_t>(me)), origin);
    made.collectives.set_profile(profile);
    return made;
}

Successor successor_of(const engine::Context& parent, const NodeId& self, const Outcome& agreed,
                       std::span<const NodeId> joiners) {
    const std::vector<Rank>& excluded = agreed.plan.excluded;
    Successor made;
    made.nodes.reserve(parent.pairs.size() + joiners.size());
    for (std::uint32_t rank = 0; rank < parent.pairs.size(); ++rank) {
        if (names(agreed.lost, rank) || names(excluded, rank)) continue;
        const engine::Pair* const pair = parent.pairs[rank];
        made.nodes.push_back(pair == nullptr ? self : pair->peer->node);
    }
    made.first_joiner = made.nodes.size();
    made.nodes.insert(made.nodes.end(), joiners.begin(), joiners.end());
    const auto me = std::ranges::find(made.nodes, self);
    if (me != made.nodes.end()) made.me = static_cast<std::size_t>(me - made.nodes.begin());
    // Groups that exclude each other agree on the same numbers.
    std::uint64_t colour = excluded.size();
    for (const Rank rank : excluded) colour = mixed(colour ^ rank.value());
    made.origin = {
        .parent = parent.id, .creation = agreed.creation, .colour = colour, .epoch = agreed.epoch};
    return made;
}

std::vector<Member> members_of(const NodeMembers& members, std::span<const NodeId> nodes) {
    std::vector<Member> known;
    known.reserve(nodes.size());
    for (const NodeId& node : nodes) {
        const Member* const member = members.find(node);
        known.push_back(member == nullptr ? Member{.node = node} : *member);
    }
    return known;
}

wire::NewWorld offer_of(const engine::Context& made, std::span<const NodeId> nodes,
                        std::uint32_t senders) {
    wire::NewWorld frame{.context = made.id, .origin = made.origin, .senders = senders};
    frame.members.reserve(nodes.size());
    for (const NodeId& node : nodes) frame.members.push_back({node.bytes()});
    return frame;
}

std::optional<Successor> accepted(const wire::NewWorld& offered, const Identity& self) {
    Successor made{.origin = offered.origin};
    made.nodes.reserve(offered.members.size());
    for (const wire::WorldMember& one : offered.members) made.nodes.emplace_back(one.node);
    made.first_joiner = made.nodes.size();
    const auto me = std::ranges::find(made.nodes, self.node);
    if (me == made.nodes.end()) return std::nullopt;
    if (context_id(self.cluster, offered.origin) != offered.context) return std::nullopt;
    made.me = static_cast<std::size_t>(me - made.nodes.begin());
    return made;
}

bool is_eldest(const View& view, const NodeId& self) noexcept {
    return !view.members.empty() && view.members.front().node == self;
}

std::uint64_t Readiness::ready(TimePoint now, Epoch epoch, bool linked) noexcept {
    if (std::exchange(epoch_, epoch) != epoch) since_ = now;
    return linked || now - since_ >= kLinkTime ? epoch.value() : 0;
}

}  // namespace nexar::runtime
