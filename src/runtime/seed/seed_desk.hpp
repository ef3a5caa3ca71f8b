#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nexar/result.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/address.hpp"
#include "base/identity.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "security/join_string.hpp"
#include "security/public_key.hpp"
#include "security/token_table.hpp"
#include "security/wall_time.hpp"
#include "wire/limits.hpp"
#include "wire/seed_messages.hpp"

namespace nexar::runtime {

/// A process that asks to join with a well-formed request.
struct Applicant {
    bool proved_job_secret = false;
    security::TokenId token{};  // if the job secret was not proved
    std::span<const std::byte> secret{};
    security::PublicKeyHash key{};
    std::optional<Rank> wanted_rank{};
    std::vector<Address> addresses{};
    std::string host{};
};

/// Decides which processes join, as which node and rank, and when the cluster is complete.
/// Sans-I/O: state() must survive a restart, so the owner writes it before it informs anyone of a
/// change.
class SeedDesk {
public:
    /// `new_node` makes random node ids.
    SeedDesk(const wire::StoredSeed& state, std::uint32_t world, std::function<NodeId()> new_node,
             TimePoint now);

    const wire::StoredSeed& state() const noexcept { return state_; }

    /// Makes the applicant a member. An applicant with the same key and the same token is the same
    /// member, whose answer was lost. Until the world has formed, a member whose place was given
    /// away may return with the same key and its spent token, as a new node with a free rank. Fails
    /// with unauthenticated, with invalid_argument for a rank that is not free, or with
    /// too_many_pending while the cluster is complete.
    Result<Member> admit(const Applicant& applicant, const security::TokenTable& tokens,
                         security::WallTime wall, TimePoint now);

    /// Reports that a member has a link to the seed, or lost it. Fails with unauthenticated for a
    /// node that is not a member. A member that lost its link during formation keeps its place for
    /// kAbsence, and longer while no other process needs it; a member that closed its link makes
    /// room at once.
    Result<Member> attend(const Identity& identity);
    void leave(const NodeId& node, TimePoint now, bool with_goodbye = false);
    void expire(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    /// Reports that the process for `rank` has ended and will not be started again. Before the
    /// first view this ends the formation: from now on every applicant is refused, and given_up()
    /// says why. `how` continues "rank 2 ...": "exited with code 0". Returns false, without effect,
    /// after a view.
    bool give_up_on(Rank rank, const std::string& how);
    const std::optional<Error>& given_up() const noexcept { return given_up_; }

    /// Publishes a view when all members of the world attend; returns true for a new view.
    bool try_form();
    /// The latest published view, if any.
    std::optional<View> view() const;
    bool formed() const noexcept { return state_.formed; }
    std::uint32_t world() const noexcept { return state_.world_size; }

    /// Remembers a refusal for status().
    void refused(const std::string& from, const std::string& why);
    /// True while the member has a link to the seed.
    bool attends(const NodeId& node) const { return present_.contains(node); }
    /// "3 of 4 joined; 10.0.0.7 presented an expired token".
    std::string status() const;
    std::uint32_t attending() const noexcept { return static_cast<std::uint32_t>(present_.size()); }
    /// Changes with status() and view().
    std::uint64_t changes() const noexcept { return changes_; }
    /// Changes with state().
    std::uint64_t revision() const noexcept { return revision_; }

private:
    /// Several times as long as a member needs to dial again.
    static constexpr Duration kAbsence = std::chrono::seconds(30);
    static constexpr Duration kAbsenceAfterRestart = std::chrono::seconds(60);
    static constexpr std::size_t kManySpent = wire::kMaxStoredTokens / 2;
    static constexpr std::size_t kMostRefusals = 8;
    static constexpr std::size_t kMostDisplaced = 1024;

    std::uint32_t spent(const wire::Id& token) const noexcept;
    void spend(const wire::Id& token, const security::TokenTable& tokens);
    Result<Rank> free_rank(const std::optional<Rank>& wanted, TimePoint now);
    bool can_displace(const wire::StoredMember& member, TimePoint now) const;
    void displace(const wire::StoredMember& member);
    wire::StoredMember* find(const NodeId& node) noexcept;
    void begin_anew();

    wire::StoredSeed state_;
    std::function<NodeId()> new_node_;
    std::set<NodeId> present_;
    /// Members without a link.
    struct Absence {
        TimePoint until{};  // until then nobody else gets its place
        bool lost = false;  // it had a link
    };
    std::map<NodeId, Absence> absent_;
    /// Members that lost their place during this formation: their key, and the token they spent.
    std::vector<std::pair<security::PublicKeyHash, wire::Id>> displaced_;
    std::vector<std::pair<std::string, std::string>> refusals_;
    bool formed_once_ = false;
    std::optional<Error> given_up_{};
    std::uint64_t changes_ = 0;
    std::uint64_t revision_ = 0;
};

}  // namespace nexar::runtime
