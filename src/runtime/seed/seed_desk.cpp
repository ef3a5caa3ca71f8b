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

SeedDesk::SeedDesk(const wire::StoredSeed& state, const DeskOptions& options,
                   std::function<NodeId()> new_node, TimePoint now)
    : state_(state),
      max_world_(options.max_world),
      second_(options.second),
      new_node_(std::move(new_node)) {
    if (!state_.view.empty()) {
        view_ = wire::from_wire(state_.view.front());
    } else if (state_.world_size != options.world) {
        begin_anew();
    }
    state_.world_size = options.world;
    // All of them know that they are members, so they get time to find the restarted seed.
    for (const wire::ViewMember& one : state_.members) {
        absent_[NodeId(one.node)] = {.until = now + kAbsenceAfterRestart, .lost = true};
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

const wire::ViewMember* SeedDesk::find(const NodeId& node) const noexcept {
    const auto found = std::ranges::find_if(
        state_.members, [&](const auto& one) { return one.node == node.bytes(); });
    return found == state_.members.end() ? nullptr : &*found;
}

/// True if the member has been absent too long while the world forms.
bool SeedDesk::can_displace(const wire::ViewMember& member, TimePoint now) const {
    const NodeId node(member.node);
    const auto until = absent_.find(node);
    return !formed() && !present_.contains(node) &&
           (until == absent_.end() || now >= until->second.until);
}

void SeedDesk::displace(const wire::ViewMember& member) {
    const NodeId node(member.node);
    if (displaced_.size() == kMostDisplaced) displaced_.erase(displaced_.begin());
    displaced_.emplace_back(member.key_hash, member.token);
    absent_.erase(node);
    std::erase_if(state_.members, [&](const auto& one) { return one.node == node.bytes(); });
    ++changes_;
    ++revision_;
}

Result<Rank> SeedDesk::free_rank(const std::optional<Rank>& wanted, TimePoint now) {
    const auto holder = [&](Rank rank) {
        return std::ranges::find_if(state_.members,
                                    [&](const auto& one) { return one.rank == rank; });
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
            const auto away = absent_.find(NodeId(other->node));
            if (!formed() && away != absent_.end() && away->second.lost) {
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
    const Rank rank = absent->rank;
    displace(*absent);
    return rank;
}

Result<Member> SeedDesk::admit(const Applicant& applicant, const security::TokenTable& tokens,
                               security::WallTime wall, TimePoint now) {
    if (given_up_) return *given_up_;
    const wire::Id token = applicant.proved_job_secret ? wire::Id{} : applicant.token.bytes();
    if (formed()) return admit_joiner(applicant, token, tokens, wall, now);
    if (second_) {
        return Error(Errc::too_many_pending,
                     "this is the second seed of a cluster and no member has connected to it yet; "
                     "join through the first seed");
    }
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
    if (again) return wire::from_wire(*known);
    NEXAR_TRY_VALUE(rank, free_rank(applicant.wanted_rank, now));
    if (!applicant.proved_job_secret && !returns) spend(token, tokens);
    return add(applicant, token, rank, now);
}

Member SeedDesk::add(const Applicant& applicant, const wire::Id& token, Rank rank, TimePoint now) {
    std::erase(displaced_, std::pair(applicant.key, token));
    const Member member{.node = new_node_(),
                        .incarnation = Incarnation(1),
                        .rank = rank,
                        .addresses = applicant.addresses,
                        .host = applicant.host,
                        .key_hash = applicant.key,
                        .token = token};
    const auto at = std::ranges::lower_bound(state_.members, rank, {},
                                             [](const auto& one) { return one.rank; });
    state_.members.insert(at, wire::in_wire(member));
    absent_[member.node] = {.until = now + kAbsence};
    ++changes_;
    ++revision_;
    return member;
}

Result<Member> SeedDesk::attend(const Identity& identity) {
    if (given_up_) return *given_up_;
    const Member* const member = view_ ? view_->find(identity.node) : nullptr;
    const wire::ViewMember* const stored = member == nullptr ? find(identity.node) : nullptr;
    if ((member == nullptr || member->incarnation != identity.incarnation) &&
        (stored == nullptr || stored->incarnation != identity.incarnation.value())) {
        return Error(Errc::unauthenticated,
                     fmt::format("node {} is not a member of this cluster; it must join again",
                                 identity.node.to_hex()));
    }
    absent_.erase(identity.node);
    said_goodbye_.erase(identity.node);
    present_.insert(identity.node);
    ++changes_;
    if (view_ && stored != nullptr) ++joiner_changes_;
    return member != nullptr ? *member : wire::from_wire(*stored);
}

void SeedDesk::leave(const NodeId& node, TimePoint now, bool with_goodbye) {
    if (present_.erase(node) == 0) return;
    ++changes_;
    if (!view_) {
        absent_[node] = {.until = with_goodbye ? now : now + kAbsence, .lost = true};
        return;
    }
    if (find(node) != nullptr) {
        ++joiner_changes_;
        if (with_goodbye) return drop_joiner(node);
        absent_[node] = {.until = now + kAbsence, .lost = true};
        return;
    }
    if (with_goodbye && view_->find(node) != nullptr) said_goodbye_.insert(node);
    if (all_said_goodbye()) begin_anew();
}

void SeedDesk::begin_anew() {
    // Tokens stay spent, and epochs only grow. The members may have decided views that this seed
    // does not know, but each of them was without one member more.
    if (view_) {
        ended_ = *view_;
        state_.epoch = Epoch(view_->epoch.value() + view_->members.size());
        state_.spent = wire::in_wire(*view_).spent;
    }
    view_.reset();
    state_.view.clear();
    state_.members.clear();
    present_.clear();
    absent_.clear();
    said_goodbye_.clear();
    displaced_.clear();
    ++changes_;
    ++revision_;
    ++joiner_changes_;
}

void SeedDesk::expire(TimePoint now) {
    for (auto at = absent_.begin(); at != absent_.end();) {
        const auto [node, absence] = *at;
        if (now < absence.until) {
            ++at;
            continue;
        }
        at = absent_.erase(at);
        if (view_) drop_joiner(node);
    }
}

std::optional<TimePoint> SeedDesk::next_deadline() const {
    std::optional<TimePoint> due;
    for (const auto& [node, absence] : absent_) {
        due = due ? std::min(*due, absence.until) : absence.until;
    }
    return due;
}

bool SeedDesk::give_up_on(Rank rank, const std::string& how) {
    if (formed() || formed_once_ || rank.value() >= state_.world_size) return false;
    if (given_up_) return true;
    const bool member =
        std::ranges::any_of(state_.members, [&](const auto& one) { return one.rank == rank; });
    given_up_ = Error(Errc::closed,
                      fmt::format("the cluster cannot form: rank {} {} before {} joined",
                                  rank.value(), how, member ? "all other ranks had" : "it had"));
    ++changes_;
    return true;
}

bool SeedDesk::try_form() {
    if (given_up_ || second_ || formed() || present_.size() < state_.world_size) return false;
    NEXAR_ASSERT(state_.members.size() == state_.world_size);
    View view{.epoch = std::max(Epoch(state_.epoch.value() + 1), state_.least_epoch)};
    view.members.reserve(state_.members.size());
    for (const auto& one : state_.members) view.members.push_back(wire::from_wire(one));
    view.witness =
        Witness{.seed = NodeId(state_.seed), .incarnation = Incarnation(state_.incarnation)};
    view.next_rank = Rank(state_.world_size);
    view.spent.reserve(state_.spent.size());
    for (const auto& one : state_.spent) view.spent.push_back({one.token, one.uses});
    formed_once_ = true;
    state_.members.clear();
    state_.epoch = view.epoch;
    state_.view = {wire::in_wire(view)};
    view_ = std::move(view);
    refusals_.clear();
    displaced_.clear();
    ++changes_;
    ++revision_;
    return true;
}

void SeedDesk::refused(const std::string& from, const std::string& why) {
    // A process that retries every second does not change the status.
    if (std::ranges::find(refusals_, std::pair(from, why)) != refusals_.end()) return;
    std::erase_if(refusals_, [&](const auto& one) { return one.first == from; });
    if (refusals_.size() == kMostRefusals) refusals_.erase(refusals_.begin());
    refusals_.emplace_back(from, why);
    ++changes_;
}

std::uint32_t SeedDesk::attending() const noexcept {
    if (!view_) return static_cast<std::uint32_t>(present_.size());
    return static_cast<std::uint32_t>(std::ranges::count_if(
        view_->members, [&](const Member& one) { return present_.contains(one.node); }));
}

std::string SeedDesk::status() const {
    if (view_) return status_of_view();
    if (second_) return "this second seed waits for members of the cluster to connect";
    std::string text = fmt::format("{} of {} joined", attending(), state_.world_size);
    std::vector<std::string> absent;
    std::set<Rank> taken;
    for (const auto& one : state_.members) {
        taken.insert(one.rank);
        if (!present_.contains(NodeId(one.node))) {
            absent.push_back(fmt::format("rank {} on {}", one.rank.value(), one.host));
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
    for (const auto& [from, why] : refusals_) text += fmt::format("; {}: {}", from, why);
    return text;
}

}  // namespace nexar::runtime
