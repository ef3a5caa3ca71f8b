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

/// Who asks to be let in, after what it showed was found to be well-formed.
struct Applicant {
    bool proved_job_secret = false;
    security::TokenId token{};  // else
    std::span<const std::byte> secret{};
    security::PublicKeyHash key{};
    std::optional<Rank> wanted_rank{};
    std::vector<Address> addresses{};
    std::string host{};
};

/// Decides who gets in, as which node and rank, and when the cluster is complete. Sans-I/O: what
/// must survive a restart is state(), to be kept before anybody is told of it.
class SeedDesk {
public:
    /// `new_node` makes random node ids.
    SeedDesk(const wire::StoredSeed& state, std::uint32_t world, std::function<NodeId()> new_node,
             TimePoint now);

    const wire::StoredSeed& state() const noexcept { return state_; }

    /// The member that the applicant is from now on. The same key with the same token is the same
    /// member again: its answer was lost. Until the world has formed, a member whose place was
    /// given away may come again with the same key and its spent token: it is a new node, with a
    /// rank that is free. An Error: unauthenticated, or invalid_argument for a rank that is not
    /// free, or too_many_pending while the cluster is complete.
    Result<Member> admit(const Applicant& applicant, const security::TokenTable& tokens,
                         security::WallTime wall, TimePoint now);

    /// A member has a link to the seed, or lost it. An Error (unauthenticated) for a node that is
    /// not a member. A member that lost its link during formation keeps its place for kAbsence, and
    /// longer while nobody else needs it; one that said goodbye makes room at once.
    Result<Member> attend(const Identity& identity);
    void leave(const NodeId& node, TimePoint now, bool with_goodbye = false);
    void expire(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    /// The process for `rank` has ended and will not be started again. Before the first view this
    /// ends the formation: from now on nobody is let in, and given_up() says why. `how` continues
    /// "rank 2 ...": "exited with code 0". False, and without effect, once there was a view.
    bool give_up_on(Rank rank, const std::string& how);
    const std::optional<Error>& given_up() const noexcept { return given_up_; }

    /// Publishes a view when all members of the world attend; true when there is a new one.
    bool try_form();
    /// The last one that was published, once there is one.
    std::optional<View> view() const;
    bool formed() const noexcept { return state_.formed; }
    std::uint32_t world() const noexcept { return state_.world_size; }

    /// Remembers why somebody was not let in, for who waits.
    void refused(const std::string& from, const std::string& why);
    /// Whether the member has a link to the seed now.
    bool attends(const NodeId& node) const { return present_.contains(node); }
    /// "3 of 4 joined; 10.0.0.7 presented an expired token".
    std::string status() const;
    std::uint32_t attending() const noexcept { return static_cast<std::uint32_t>(present_.size()); }
    /// Changes with status() and view().
    std::uint64_t changes() const noexcept { return changes_; }
    /// Changes with state().
    std::uint64_t revision() const noexcept { return revision_; }

private:
    /// Several times what a member may need to dial again.
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
        TimePoint until{};  // nobody else gets its place before
        bool lost = false;  // it had a link
    };
    std::map<NodeId, Absence> absent_;
    /// Who lost its place during this formation: its key, and the token that it has spent.
    std::vector<std::pair<security::PublicKeyHash, wire::Id>> displaced_;
    std::vector<std::pair<std::string, std::string>> refusals_;
    bool formed_once_ = false;
    std::optional<Error> given_up_{};
    std::uint64_t changes_ = 0;
    std::uint64_t revision_ = 0;
};

}  // namespace nexar::runtime
