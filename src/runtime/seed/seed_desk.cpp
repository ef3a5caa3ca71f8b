#include "runtime/seed/seed_desk.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "wire/view.hpp"

namespace nexar::runtime {

namespace {

constexpr std::size_t kMostNamed = 8;

std::string short_list(const std::vector<std::string>& texts) {
    std::string all;
    for (const std::string& text : texts) all += (all.empty() ? "" : ", ") + text;
    return all;
}

}  // namespace

SeedDesk::SeedDesk(const wire::StoredSeed& state, std::uint32_t world,
                   std::function<NodeId()> new_node, TimePoint now)
    : state_(state), new_node_(std::move(new_node)) {
    if (state_.world_size != world) begin_anew();
    state_.world_size = world;
    // All of them know that they are members, so they get time to find the restarted seed.
    for (const wire::StoredMember& one : state_.members) {
        absent_[NodeId(one.member.node)] = {.until = now + kAbsenceAfterRestart, .lost = true};
    }
}

std::uint32_t SeedDesk::spent(const wire::Id& token) const noexcept {
    const auto found = std::ranges::find(state_.spent, token, &wire::SpentToken::token);
    return found == state_.spent.end() ? 0 : found->uses;
}

void SeedDesk::spend(const wire::Id& token, const security::TokenTable& tokens) {
    if (state_.spent.size() >= kManySpent) {
        // A token that the table has forgotten admits nobody anyway.
        std::erase_if(state_.spent, [&](const wire::SpentToken& one) {
            return tokens.find(security::TokenId(one.token)) == nullptr;
        });
    }
    const auto at = std::ranges::lower_bound(state_.spent, token, {}, &wire::SpentToken::token);
    if (at != state_.spent.end() && at->token == token) {
        ++at->uses;
    } else {
        state_.spent.insert(at, {.token = token, .uses = 1});
    }
}

wire::StoredMember* SeedDesk::find(const NodeId& node) noexcept {
    const auto found = std::ranges::find_if(
        state_.members, [&](const auto& one) { return one.member.node == node.bytes(); });
    return found == state_.members.end() ? nullptr : &*found;
}

/// True if the member has been absent too long while the world forms.
bool SeedDesk::can_displace(const wire::StoredMember& member, TimePoint now) const {
    const NodeId node(member.member.node);
    const auto until = absent_.find(node);
    return !state_.formed && !present_.contains(node) &&
           (until == absent_.end() || now >= until->second.until);
}

void SeedDesk::displace(const wire::StoredMember& member) {
    const NodeId node(member.member.node);
    if (displaced_.size() == kMostDisplaced) displaced_.erase(displaced_.begin());
    displaced_.emplace_back(member.key_hash, member.token);
    absent_.erase(node);
    std::erase_if(state_.members, [&](const auto& one) { return one.member.node == node.bytes(); });
    ++changes_;
    ++revision_;
}

Result<Rank> SeedDesk::free_rank(const std::optional<Rank>& wanted, TimePoint now) {
    const auto holder = [&](Rank rank) {
        return std::ranges::find_if(state_.members,
                                    [&](const auto& one) { return one.member.rank == rank; });
    };
    if (wanted) {
        if (wanted->value() >= state_.world_size) {
            return Error(
                Errc::invalid_argument,
                fmt::format("it requested rank {}, but the ranks of this cluster are 0 to {}",
                            wanted->value(), state_.world_size - 1));
        }
        const auto other = holder(*wanted);
        if (other == state_.members.end()) return *wanted;
        if (!can_displace(*other, now)) {
            const auto away = absent_.find(NodeId(other->member.node));
            if (!state_.formed && away != absent_.end() && away->second.lost) {
                return Error(
                    Errc::too_many_pending,
                    fmt::format("rank {} is reserved for a process on {} that lost its "
                                "connection; it becomes free soon unless that process returns",
                                wanted->value(), other->host));
            }
            return Error(Errc::invalid_argument,
                         fmt::format("it requested rank {}, which a process on {} already has",
                                     wanted->value(), other->host));
        }
        displace(*other);
        return *wanted;
    }
    for (std::uint32_t rank = 0; rank < state_.world_size; ++rank) {
        if (holder(Rank(rank)) == state_.members.end()) return Rank(rank);
    }
    const auto absent = std::ranges::find_if(
        state_.members, [&](const auto& one) { return can_displace(one, now); });
    if (absent == state_.members.end()) {
        return Error(
            Errc::too_many_pending,
            state_.world_size == 1
                ? std::string("the cluster is complete: its only rank is in use until that "
                              "member leaves")
                : fmt::format("the cluster is complete: all its {} ranks are in use until these "
                              "members leave",
                              state_.world_size));
    }
    const Rank rank = absent->member.rank;
    displace(*absent);
    return rank;
}

Result<Member> SeedDesk::admit(const Applicant& applicant, const security::TokenTable& tokens,
                               security::WallTime wall, TimePoint now) {
    if (given_up_) return *given_up_;
    const wire::Id token = applicant.proved_job_secret ? wire::Id{} : applicant.token.bytes();
    const auto known = std::ranges::find_if(state_.members, [&](const auto& one) {
        return one.key_hash == applicant.key && one.token == token;
    });
    const bool again = known != state_.members.end();
    const auto displaced = std::ranges::find(displaced_, std::pair(applicant.key, token));
    const bool returns = displaced != displaced_.end();
    if (!applicant.proved_job_secret) {
        // The process that spent the token may return with the same key.
        const std::uint32_t uses = again || returns ? 0 : spent(token);
        NEXAR_TRY(tokens.check(applicant.token, applicant.secret, uses, wall));
    }
    if (again) return wire::from_wire(known->member);
    NEXAR_TRY_VALUE(rank, free_rank(applicant.wanted_rank, now));
    std::erase(displaced_, std::pair(applicant.key, token));
    const Member member{.node = new_node_(),
                        .incarnation = Incarnation(1),
                        .rank = rank,
                        .addresses = applicant.addresses};
    const wire::StoredMember stored{.member = wire::in_wire(member),
                                    .key_hash = applicant.key,
                                    .token = token,
                                    .host = applicant.host};
    const auto at = std::ranges::lower_bound(state_.members, rank, {},
                                             [](const auto& one) { return one.member.rank; });
    state_.members.insert(at, stored);
    if (!applicant.proved_job_secret && !returns) spend(token, tokens);
    absent_[member.node] = {.until = now + kAbsence};
    ++changes_;
    ++revision_;
    return member;
}

Result<Member> SeedDesk::attend(const Identity& identity) {
    if (given_up_) return *given_up_;
    const wire::StoredMember* const stored = find(identity.node);
    if (stored == nullptr || stored->member.incarnation != identity.incarnation.value()) {
        return Error(Errc::unauthenticated,
                     fmt::format("node {} is not a member of this cluster; it must join again",
                                 identity.node.to_hex()));
    }
    absent_.erase(identity.node);
    present_.insert(identity.node);
    ++changes_;
    return wire::from_wire(stored->member);
}

void SeedDesk::leave(const NodeId& node, TimePoint now, bool with_goodbye) {
    if (present_.erase(node) == 0) return;
    ++changes_;
    if (!state_.formed) {
        absent_[node] = {.until = with_goodbye ? now : now + kAbsence, .lost = true};
    } else if (present_.empty()) {
        begin_anew();
    }
}

void SeedDesk::begin_anew() {
    state_.members.clear();
    state_.formed = false;
    present_.clear();
    absent_.clear();
    displaced_.clear();
    ++changes_;
    ++revision_;
}

void SeedDesk::expire(TimePoint now) {
    std::erase_if(absent_, [&](const auto& entry) { return now >= entry.second.until; });
    if (state_.formed && present_.empty() && absent_.empty()) begin_anew();
}

std::optional<TimePoint> SeedDesk::next_deadline() const {
    std::optional<TimePoint> due;
    for (const auto& [node, absence] : absent_) {
        due = due ? std::min(*due, absence.until) : absence.until;
    }
    return due;
}

bool SeedDesk::give_up_on(Rank rank, const std::string& how) {
    if (state_.formed || formed_once_ || rank.value() >= state_.world_size) return false;
    if (given_up_) return true;
    const bool member = std::ranges::any_of(
        state_.members, [&](const auto& one) { return one.member.rank == rank; });
    given_up_ = Error(Errc::closed,
                      fmt::format("the cluster cannot form: rank {} {} before {} joined",
                                  rank.value(), how, member ? "all other ranks had" : "it had"));
    ++changes_;
    return true;
}

bool SeedDesk::try_form() {
    if (given_up_ || state_.formed || present_.size() < state_.world_size) return false;
    NEXAR_ASSERT(state_.members.size() == state_.world_size);
    state_.formed = true;
    formed_once_ = true;
    state_.epoch = Epoch(state_.epoch.value() + 1);
    refusals_.clear();
    displaced_.clear();
    ++changes_;
    ++revision_;
    return true;
}

std::optional<View> SeedDesk::view() const {
    if (!state_.formed) return std::nullopt;
    View view{.epoch = state_.epoch};
    view.witness =
        Witness{.seed = NodeId(state_.seed), .incarnation = Incarnation(state_.incarnation)};
    for (const auto& one : state_.members) view.members.push_back(wire::from_wire(one.member));
    return view;
}

void SeedDesk::refused(const std::string& from, const std::string& why) {
    // A process that retries every second does not change the status.
    if (std::ranges::find(refusals_, std::pair(from, why)) != refusals_.end()) return;
    std::erase_if(refusals_, [&](const auto& one) { return one.first == from; });
    if (refusals_.size() == kMostRefusals) refusals_.erase(refusals_.begin());
    refusals_.emplace_back(from, why);
    ++changes_;
}

std::string SeedDesk::status() const {
    std::string text = fmt::format(
        "{} of {} joined", state_.formed ? state_.world_size : attending(), state_.world_size);
    std::vector<std::string> absent;
    std::set<Rank> taken;
    for (const auto& one : state_.members) {
        taken.insert(one.member.rank);
        if (!present_.contains(NodeId(one.member.node))) {
            absent.push_back(fmt::format("rank {} on {}", one.member.rank.value(), one.host));
        }
    }
    std::vector<std::string> missing;
    for (std::uint32_t rank = 0; rank < state_.world_size && missing.size() < kMostNamed; ++rank) {
        if (!taken.contains(Rank(rank))) missing.push_back(fmt::format("{}", rank));
    }
    const std::size_t count = state_.world_size - taken.size();
    if (count != 0) {
        text += fmt::format("; waiting for {} {}{}", count == 1 ? "rank" : "ranks",
                            short_list(missing), count > missing.size() ? ", ..." : "");
    }
    if (!absent.empty()) text += fmt::format("; not connected now: {}", short_list(absent));
    if (state_.formed) return text;
    for (const auto& [from, why] : refusals_) text += fmt::format("; {}: {}", from, why);
    return text;
}

}  // namespace nexar::runtime
