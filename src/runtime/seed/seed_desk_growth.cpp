// The desk of a cluster that has formed: which processes it proposes as new members, and what it
// knows of the members.

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "runtime/seed/seed_desk.hpp"
#include "wire/view.hpp"

namespace nexar::runtime {

namespace {

constexpr std::size_t kMostMembersNamed = 8;

/// "rank 0 on node1, rank 2 on node3, ..."
std::string places_of(const std::vector<const Member*>& members) {
    std::string text;
    for (std::size_t i = 0; i < std::min(members.size(), kMostMembersNamed); ++i) {
        text += fmt::format("{}rank {} on {}", i == 0 ? "" : ", ", members[i]->rank.value(),
                            members[i]->host);
    }
    return members.size() > kMostMembersNamed ? text + ", ..." : text;
}

}  // namespace

const View& SeedDesk::formed_view() const {
    NEXAR_ASSERT(view_.has_value(), "the cluster has formed");
    return *view_;
}

Result<Rank> SeedDesk::next_rank(const std::optional<Rank>& wanted) const {
    const std::uint64_t next =
        std::uint64_t{formed_view().next_rank.value()} + state_.members.size();
    if (next > wire::kMaxRank) {
        return Error(Errc::limit_exceeded,
                     "this cluster has used up all its ranks; start a new cluster");
    }
    if (wanted && wanted->value() != next) {
        return Error(Errc::invalid_argument,
                     fmt::format("it requested rank {}, but the cluster has formed, ranks are "
                                 "never given twice, and the next one is {}; join without a rank",
                                 wanted->value(), next));
    }
    return Rank(static_cast<std::uint32_t>(next));
}

Result<void> SeedDesk::check_room() const {
    if (attending() == 0) return Error(Errc::too_many_pending, vanished());
    const View& view = formed_view();
    const Witness self{.seed = NodeId(state_.seed), .incarnation = Incarnation(state_.incarnation)};
    const std::size_t voters = attending() + (view.witness_votes() && view.witness == self ? 1 : 0);
    if (voters < view.majority()) {
        return Error(Errc::too_many_pending,
                     fmt::format("only {} of the {} members are connected to this seed, too few to "
                                 "agree on a new one; it can join when the others return, or "
                                 "through another seed",
                                 attending(), view.members.size()));
    }
    const std::size_t members = view.members.size() + state_.members.size();
    if (members >= max_world_) {
        return Error(
            Errc::too_many_pending,
            fmt::format("the cluster is complete: {} of at most {} members are in use until "
                        "one leaves",
                        members, max_world_));
    }
    if (members >= wire::kMaxViewMembers || state_.members.size() >= kMostJoiners) {
        return Error(Errc::too_many_pending,
                     fmt::format("{} processes already wait for the members to admit them",
                                 state_.members.size()));
    }
    return {};
}

Result<Member> SeedDesk::admit_joiner(const Applicant& applicant, const wire::Id& token,
                                      const security::TokenTable& tokens, security::WallTime wall,
                                      TimePoint now) {
    const auto same = [&](const auto& one) {
        return one.key_hash == applicant.key && one.token == token;
    };
    const View& view = formed_view();
    const auto member = std::ranges::find_if(view.members, same);
    const auto joiner = std::ranges::find_if(state_.members, same);
    const bool again = member != view.members.end() || joiner != state_.members.end();
    if (!applicant.proved_job_secret) {
        const auto waiting = std::ranges::count(state_.members, token, &wire::ViewMember::token);
        const std::uint32_t uses = again ? 0 : spent(token) + static_cast<std::uint32_t>(waiting);
        NEXAR_TRY(tokens.check(applicant.token, applicant.secret, uses, wall));
        const std::size_t different = view.spent.size() + state_.members.size();
        if (!again && uses == 0 && different >= wire::kMaxStoredTokens) {
            return Error(Errc::limit_exceeded,
                         fmt::format("the members of this cluster have used {} tokens, the most it "
                                     "remembers; create one token with many uses instead",
                                     view.spent.size()));
        }
    }
    if (member != view.members.end()) return *member;
    if (joiner != state_.members.end()) return wire::from_wire(*joiner);
    NEXAR_TRY(check_room());
    NEXAR_TRY_VALUE(rank, next_rank(applicant.wanted_rank));
    return add(applicant, token, rank, now);
}

void SeedDesk::drop_joiner(const NodeId& node) {
    const auto dropped =
        std::erase_if(state_.members, [&](const auto& one) { return one.node == node.bytes(); });
    if (dropped == 0) return;
    absent_.erase(node);
    present_.erase(node);
    number_joiners();
    ++changes_;
    ++revision_;
    ++joiner_changes_;
}

/// Another seed may have granted the last use of a token meanwhile.
void SeedDesk::drop_unlicensed(const security::TokenTable& tokens) {
    std::map<wire::Id, std::uint32_t> uses;
    std::vector<NodeId> dropped;
    for (const wire::ViewMember& one : state_.members) {
        const security::Token* const token = tokens.find(security::TokenId(one.token));
        if (one.token == wire::Id{} || token == nullptr) continue;
        const std::uint32_t used = uses.try_emplace(one.token, spent(one.token)).first->second++;
        if (used >= token->uses) dropped.emplace_back(one.node);
    }
    for (const NodeId& node : dropped) drop_joiner(node);
}

std::vector<SpentToken> SeedDesk::limits(const security::TokenTable& tokens) const {
    std::vector<SpentToken> all;
    all.reserve(state_.members.size());
    for (const wire::ViewMember& one : state_.members) {
        // A token that was removed meanwhile still counts for those who joined with it.
        const security::Token* const token = tokens.find(security::TokenId(one.token));
        const std::uint32_t uses = token != nullptr ? token->uses : spent(one.token) + 1;
        all.push_back({.token = one.token, .uses = uses});
    }
    return all;
}

/// The members assign ranks in this order.
void SeedDesk::number_joiners() {
    std::uint32_t next = formed_view().next_rank.value();
    for (wire::ViewMember& one : state_.members) one.rank = Rank(next++);
}

void SeedDesk::decided(const View& view) {
    const bool in_sequence = view_ && view.epoch.value() == view_->epoch.value() + 1;
    view_ = view;
    state_.epoch = view.epoch;
    state_.view = {wire::in_wire(view)};
    state_.spent = state_.view.front().spent;
    std::erase_if(state_.members,
                  [&](const auto& one) { return view.find(NodeId(one.node)) != nullptr; });
    if (!in_sequence) {
        // A view in between may have had a joiner that the members have evicted since. Nodes are
        // never readmitted, so these processes join again, as new nodes.
        while (!state_.members.empty()) drop_joiner(NodeId(state_.members.front().node));
    }
    std::erase_if(said_goodbye_, [&](const NodeId& node) { return view.find(node) == nullptr; });
    std::erase_if(present_, [&](const NodeId& node) {
        return view.find(node) == nullptr && find(node) == nullptr;
    });
    std::erase_if(absent_, [&](const auto& one) { return find(one.first) == nullptr; });
    number_joiners();
    formed_once_ = true;
    ++changes_;
    ++revision_;
    ++joiner_changes_;
    if (view.members.empty() || all_said_goodbye()) begin_anew();
}

bool SeedDesk::all_said_goodbye() const {
    return view_ && std::ranges::all_of(view_->members, [&](const Member& one) {
               return said_goodbye_.contains(one.node);
           });
}

std::vector<Member> SeedDesk::joiners() const {
    std::vector<Member> all;
    if (!view_) return all;
    for (const auto& one : state_.members) {
        if (present_.contains(NodeId(one.node))) all.push_back(wire::from_wire(one));
    }
    return all;
}

std::vector<Member> SeedDesk::known() const {
    std::vector<Member> all;
    if (view_) all = view_->members;
    all.reserve(all.size() + state_.members.size());
    for (const auto& one : state_.members) all.push_back(wire::from_wire(one));
    return all;
}

std::string SeedDesk::vanished() const {
    const View& view = formed_view();
    std::vector<const Member*> gone;
    std::string ranks;
    for (const Member& one : view.members) {
        if (present_.contains(one.node) || said_goodbye_.contains(one.node)) continue;
        gone.push_back(&one);
        ranks += fmt::format(" {}", one.rank.value());
    }
    return fmt::format(
        "no member of the cluster is connected to this seed; those of epoch {} that did not leave "
        "are {}. The cluster continues when they return; if their processes have ended, stop the "
        "seed, run `nexar members forget{}` and start it again",
        view.epoch.value(), places_of(gone), gone.size() > kMostMembersNamed ? " RANK..." : ranks);
}

std::string SeedDesk::status_of_view() const {
    const View& view = formed_view();
    const std::size_t members = view.members.size();
    const bool first = members == state_.world_size && view.next_rank.value() == members;
    std::string text = first ? fmt::format("{} of {} joined", members, members)
                             : fmt::format("{} member{} in epoch {}", members,
                                           members == 1 ? "" : "s", view.epoch.value());
    if (!state_.members.empty()) {
        text += fmt::format("; {} process{} waiting to join", state_.members.size(),
                            state_.members.size() == 1 ? " is" : "es are");
    }
    if (attending() == 0) return fmt::format("{}; {}", text, vanished());
    std::vector<const Member*> absent;
    for (const Member& one : view.members) {
        if (!present_.contains(one.node)) absent.push_back(&one);
    }
    if (!absent.empty()) text += fmt::format("; not connected now: {}", places_of(absent));
    return text;
}

}  // namespace nexar::runtime
