#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/assert.hpp"
#include "base/identity.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "base/view.hpp"
#include "engine/agreement.hpp"
#include "wire/membership_messages.hpp"

namespace nexar::engine {

/// Uniform agreement among the members of a communicator that are in the view. Sans-I/O, like the
/// engine that owns it.
///
/// The agreements of a communicator are numbered. In view e the coordinator of a number is the
/// lowest rank of the communicator that is in the view and not excluded; the participants are all
/// such ranks.
///
///     participant               coordinator
///       state(call, stored) ------->          until it has the state of every participant in e
///             <------- proposal(value)        the value stored in the highest view, else a new one
///       stored ------->                       until every participant has stored it in e
///             <------- decision(value)
///
/// A participant stores a proposal only in its own view, and a state tells what it has stored so
/// far; after a new view everything begins again with the states. Whatever a rank returned was
/// stored by all participants of some view e, so every later coordinator finds it among the states
/// and proposes nothing else. Failures therefore delay an agreement until the next view, but cannot
/// make two ranks return different values.
///
/// A rank keeps taking part after its operation has ended (it returned, timed out or was cancelled)
/// and after its communicator has ended, as long as others may need it; it forgets an ended
/// communicator when no other rank of it is in the view. If its operation ended with an error
/// before the decision, the others may get a result and go on in a new communicator. So the next
/// shrink of that rank completes the same number, and gets the same result.
class Agreements {
public:
    class Owner {
    public:
        virtual ~Owner() = default;
        /// Sends a frame, or drops it if there is no link. connected() must follow when there is
        /// one.
        virtual void send(const NodeId& to, const wire::Agreement& frame) = 0;
        /// The operation has ended, with or without `error`.
        virtual void end(AgreeOperation& operation) = 0;
        /// The communicators made from this one are numbered from `creation` on.
        virtual void agreed(ContextId context, std::uint64_t creation) = 0;
    };

    /// Agreements of one communicator that may be undecided at the same time, and decided ones that
    /// are kept for ranks that ask late.
    static constexpr std::uint64_t kMaxUndecided = 16;
    static constexpr std::uint64_t kKept = 16;
    /// Communicators that have ended here and in which this rank still takes part.
    static constexpr std::size_t kMaxEnded = 256;
    /// What a peer may send in communicators that are unknown here.
    static constexpr std::size_t kMaxEarly = 64;
    static constexpr std::size_t kMaxEarlyBytes = std::size_t{256} * 1024;

    explicit Agreements(Owner& owner) noexcept : owner_(&owner) {}
    Agreements(const Agreements&) = delete;
    Agreements& operator=(const Agreements&) = delete;

    /// Adds a communicator. `members` has the node of each rank, with this node at `me`. It was
    /// made from `parent`, if that is known here.
    void add(ContextId context, std::span<const NodeId> members, Rank me, ContextId parent = {});
    /// The communicator ended; none of its operations may be pending.
    void end(ContextId context);

    /// Starts an operation, which may end at once.
    void start(ContextId context, AgreeOperation& operation);
    void cancel(AgreeOperation& operation);
    /// Ends all operations with this error.
    void end_all(const Error& error);

    /// Ignores a view that is not newer than the present one.
    void set_view(const View& view);
    Epoch epoch() const noexcept { return epoch_; }
    /// True before the first view, too.
    bool in_view(const NodeId& node) const { return epoch_ == Epoch(0) || view_.contains(node); }

    /// A frame from a node. An Error disconnects it.
    Result<void> handle(const NodeId& from, const wire::Agreement& frame);
    /// A link to this node is up: repeats what it may have missed.
    void connected(const NodeId& node);

    /// There is no way to reach this node, although it is in the view or there are no views: ends
    /// the operations that depend on it.
    void cannot_reach(const NodeId& node, const Error& error);

    /// Sets the current time and ends operations whose deadline has passed.
    void advance(TimePoint now);
    std::optional<TimePoint> next_deadline() const noexcept;

    /// Frames of peers that wait for a view, for a call of this rank or for a communicator. The
    /// constants above bound them: kMaxUndecided per communicator and peer, and kMaxEarly per peer.
    std::size_t kept_frames() const noexcept;
    /// Communicators in which this rank takes part, including ended ones.
    std::size_t communicators() const noexcept { return groups_.size(); }

private:
    /// One number of a communicator.
    struct Instance {
        std::uint64_t number = 0;
        AgreeOperation* operation = nullptr;        // while it is pending
        std::optional<wire::AgreementCall> call{};  // of this rank, once it was made
        std::optional<wire::AgreementValue> stored{};
        Epoch stored_in{};
        bool decided = false;    // `stored` is the decision
        bool abandoned = false;  // the operation ended before the decision
        WorldPlan plan{};        // of the operation
        /// The last state of each other rank in the view, until the decision. One of this view
        /// counts, one of a newer view will count; one of an older view shows what the rank called.
        std::map<Rank, wire::Agreement> states{};
        std::set<Rank> askers{};      // for the decision
        std::vector<Rank> missing{};  // as the coordinator said

        // Of the coordinator, in the present view.
        bool proposed = false;
        std::set<Rank> stored_by{};

        /// The call of this rank, which was made.
        const wire::AgreementCall& made_call() const {
            NEXAR_ASSERT(call.has_value());
            return *call;
        }
        /// The value, which this rank has stored.
        const wire::AgreementValue& stored_value() const {
            NEXAR_ASSERT(stored.has_value());
            return *stored;
        }
    };

    struct Early {
        std::deque<wire::Agreement> frames{};
        std::size_t bytes = 0;
    };

    /// The agreements of one communicator.
    struct Group {
        ContextId id{};
        Rank me{};
        std::vector<NodeId> members{};
        /// Their ranks in the view; nullopt: not in it. A node that failed and joined again has
        /// another one, and is not a member.
        std::vector<std::optional<Rank>> view_ranks{};
        bool has_view_ranks = false;
        bool ended = false;
        std::uint64_t started = 0;         // the number of the next agreement
        std::uint64_t creation = 0;        // the largest AgreementValue::creation so far
        std::deque<Instance> instances{};  // with consecutive numbers
    };

    // agreements.cpp
    Group* find(ContextId context) const;
    static Instance* find(Group& group, std::uint64_t number);
    static Instance& make(Group& group, std::uint64_t number);
    static void forget_old(Group& group);
    void forget_deserted();
    std::optional<Rank> view_rank_of(const NodeId& node, const Group* parent) const;
    void learn_view_ranks(Group& group, const Group* parent = nullptr) const;
    void detach(Instance& instance, std::optional<Error> error);
    void abandon(Instance& instance, Error error);
    static Instance* unfinished(Group& group);
    void resume(Group& group, Instance& instance, AgreeOperation& operation);
    void wait(Instance& instance, AgreeOperation& operation);
    Error too_late(const Group& group, const Instance& instance) const;
    void ask(AgreeOperation& operation);

    // agreements_steps.cpp
    bool takes_part(const Group& group, Rank rank, const std::vector<Rank>& excluded) const;
    std::optional<Rank> coordinator(const Group& group, const std::vector<Rank>& excluded) const;
    std::vector<Rank> missing(const Group& group, const Instance& instance,
                              const std::vector<Rank>& excluded) const;
    void send(const Group& group, const Instance& instance, Rank to, wire::AgreementStep step);
    void join(Group& group, Instance& instance);
    void ask_all(const Group& group, const Instance& instance);
    void compare(Group& group, Instance& instance);
    void propose(Group& group, Instance& instance);
    void propose_next(Group& group);
    wire::AgreementValue choose(const Group& group, const Instance& instance) const;
    void count(Group& group, Instance& instance);
    void decide(Group& group, Instance& instance, const wire::AgreementValue& value);
    void finish(Group& group, Instance& instance);

    // agreements_in.cpp
    static Result<void> check(const Group& group, Rank from, const wire::Agreement& frame);
    void keep_early(const NodeId& from, const wire::Agreement& frame);
    static std::size_t size_of(const wire::Agreement& frame) noexcept;
    void dispatch(Group& group, Instance& instance, Rank from, const wire::Agreement& frame);
    void on_state(Group& group, Instance& instance, Rank from, const wire::Agreement& frame);
    void on_proposal(Group& group, Instance& instance, Rank from, const wire::Agreement& frame);
    void on_question(Group& group, Instance& instance, Rank from);
    static bool names(const std::vector<Rank>& ranks, Rank rank) {
        return std::ranges::binary_search(ranks, rank);
    }

    Owner* owner_;
    Epoch epoch_{};
    std::unordered_map<NodeId, Rank> view_;  // with the ranks in the view
    std::unordered_map<ContextId, std::unique_ptr<Group>> groups_;
    std::deque<ContextId> ended_;  // oldest first
    std::unordered_map<NodeId, Early> early_;
    std::vector<AgreeOperation*> pending_;
    TimePoint now_{};
};

/// "shrink", "rebuild_excluding ranks 1, 3".
std::string agreement_text(const wire::AgreementCall& call);

}  // namespace nexar::engine
