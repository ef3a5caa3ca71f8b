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

struct DeskOptions {
    std::uint32_t world = 1;                          // members of the first view
    std::uint32_t max_world = wire::kMaxViewMembers;  // the most members of any view
    /// A seed for a cluster that another seed forms: it learns the view from the members.
    bool second = false;
};

/// Decides which processes may join and, until the cluster has formed, as which node and rank, and
/// when it is complete. From then on the members decide: the desk only proposes joiners, and learns
/// the views. Sans-I/O: state() must survive a restart, so the owner writes it before it informs
/// anyone of a change.
class SeedDesk {
public:
    /// `new_node` makes random node ids.
    SeedDesk(const wire::StoredSeed& state, const DeskOptions& options,
             std::function<NodeId()> new_node, TimePoint now);

    const wire::StoredSeed& state() const noexcept { return state_; }

    /// Makes the applicant a member of the cluster that forms, or a joiner of one that has formed.
    /// An applicant with the same key and the same token is the same node, whose answer was lost.
    /// Until the world has formed, a member whose place was given away may return with the same key
    /// and its spent token, as a new node with a free rank. Fails with unauthenticated, with
    /// invalid_argument for a rank that is not free, or with too_many_pending while the cluster
    /// cannot take it.
    Result<Member> admit(const Applicant& applicant, const security::TokenTable& tokens,
                         security::WallTime wall, TimePoint now);

    /// Reports that a member or an admitted joiner has a link to the seed, or lost it. Fails with
    /// unauthenticated for any other node. A node that lost its link during formation keeps its
    /// place for kAbsence, and longer while no other process needs it; a node that closed its link
    /// makes room at once.
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

    /// Makes the first view when all members of the world attend; returns true if it did.
    bool try_form();
    /// The members decided on this view. One without members ends the cluster: another one may
    /// form, with a higher epoch.
    void decided(const View& view);
    /// The newest view, if any.
    const std::optional<View>& view() const noexcept { return view_; }
    /// The last view of the cluster that ended last: without members, if they decided such a one.
    const std::optional<View>& ended() const noexcept { return ended_; }
    bool formed() const noexcept { return view_.has_value(); }
    /// Also true after all members have left.
    bool has_formed() const noexcept { return formed() || formed_once_; }
    /// This seed stands in for another one, which forms the cluster.
    bool is_second() const noexcept { return second_; }
    std::uint32_t world() const noexcept { return state_.world_size; }

    /// The joiners to propose: admitted, attending, and not in the view.
    std::vector<Member> joiners() const;
    /// How often the tokens of the joiners may be used.
    std::vector<SpentToken> limits(const security::TokenTable& tokens) const;
    /// Drops joiners whose tokens the newest view has used up.
    void drop_unlicensed(const security::TokenTable& tokens);
    /// All members of the view, or of the world that forms, and the joiners.
    std::vector<Member> known() const;
    bool is_joiner(const NodeId& node) const noexcept { return find(node) != nullptr; }

    /// Remembers a refusal for status().
    void refused(const std::string& from, const std::string& why);
    /// True while the node has a link to the seed.
    bool attends(const NodeId& node) const { return present_.contains(node); }
    /// "3 of 4 joined; 10.0.0.7 presented an expired token".
    std::string status() const;
    /// The number of members with a link to the seed.
    std::uint32_t attending() const noexcept;
    /// Changes with status() and view().
    std::uint64_t changes() const noexcept { return changes_; }
    /// Changes with state().
    std::uint64_t revision() const noexcept { return revision_; }
    /// Changes with joiners().
    std::uint64_t joiner_changes() const noexcept { return joiner_changes_; }

private:
    /// Several times as long as a member needs to dial again.
    static constexpr Duration kAbsence = std::chrono::seconds(30);
    static constexpr Duration kAbsenceAfterRestart = std::chrono::seconds(60);
    static constexpr std::size_t kManySpent = wire::kMaxStoredTokens / 2;
    static constexpr std::size_t kMostRefusals = 8;
    static constexpr std::size_t kMostDisplaced = 1024;
    /// Joiners of a formed cluster that wait for the members' decision.
    static constexpr std::size_t kMostJoiners = 1024;

    std::uint32_t spent(const wire::Id& token) const noexcept;
    void spend(const wire::Id& token, const security::TokenTable& tokens);
    Result<Rank> free_rank(const std::optional<Rank>& wanted, TimePoint now);
    bool can_displace(const wire::ViewMember& member, TimePoint now) const;
    void displace(const wire::ViewMember& member);
    Member add(const Applicant& applicant, const wire::Id& token, Rank rank, TimePoint now);
    const wire::ViewMember* find(const NodeId& node) const noexcept;
    void begin_anew();

    // seed_desk_growth.cpp
    /// The view of a cluster that has formed.
    const View& formed_view() const;
    Result<Member> admit_joiner(const Applicant& applicant, const wire::Id& token,
                                const security::TokenTable& tokens, security::WallTime wall,
                                TimePoint now);
    Result<Rank> next_rank(const std::optional<Rank>& wanted) const;
    Result<void> check_room() const;
    void drop_joiner(const NodeId& node);
    void number_joiners();
    bool all_said_goodbye() const;
    std::string vanished() const;
    std::string status_of_view() const;

    wire::StoredSeed state_;
    std::uint32_t max_world_;
    bool second_;
    std::function<NodeId()> new_node_;
    std::optional<View> view_;
    std::optional<View> ended_;
    std::set<NodeId> present_;
    /// Nodes without a link.
    struct Absence {
        TimePoint until{};  // until then nobody else gets its place
        bool lost = false;  // it had a link
    };
    std::map<NodeId, Absence> absent_;
    std::set<NodeId> said_goodbye_;  // members of the view that closed their link
    /// Nodes that lost their place before they knew a view: their key, and the token they spent.
    std::vector<std::pair<security::PublicKeyHash, wire::Id>> displaced_;
    std::vector<std::pair<std::string, std::string>> refusals_;
    bool formed_once_ = false;
    std::optional<Error> given_up_{};
    std::uint64_t changes_ = 0;
    std::uint64_t revision_ = 0;
    std::uint64_t joiner_changes_ = 0;
};

}  // namespace nexar::runtime
