#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/identity.hpp"
#include "base/random.hpp"
#include "base/time.hpp"
#include "base/view.hpp"
#include "membership/acceptor.hpp"
#include "membership/detector.hpp"
#include "membership/learner.hpp"
#include "membership/membership.hpp"
#include "membership/proposal.hpp"
#include "membership/proposer.hpp"

namespace nexar::membership {

/// Ties the detector, the voter, the proposer and the learner of a node together.
class Membership::State {
public:
    State(TimePoint now, const Identity& self, const Vote& known, const Options& options);

    void handle(TimePoint now, const Identity& from, bool from_seed, const Message& message);
    void hint(TimePoint now, const NodeId& node, Hint hint);
    void propose_members(TimePoint now, std::vector<Member> joiners,
                         const std::vector<SpentToken>& limits);
    void withdraw_member(const NodeId& node) {
        std::erase_if(joiners_, [&](const Joiner& one) { return one.member.node == node; });
    }
    void propose_witness(TimePoint now, const Witness& witness);
    void leave(TimePoint now);
    void turn(TimePoint now);
    std::optional<TimePoint> next_deadline() const;

    const View& view() const { return acceptor_.vote().view; }
    const Detector& detector() const { return detector_; }
    const Acceptor& acceptor() const { return acceptor_; }
    void kept();

    std::optional<Outgoing> poll_outgoing();
    std::optional<Event> poll_event();

private:
    struct Joiner {
        Member member{};
        std::uint32_t token_uses = 1;  // how often its token may be used
        unsigned refused = 0;          // ballots with it that the voters refused
    };
    /// An `accept` that waits until this node knows whether it agrees.
    struct Pending {
        Identity from{};
        bool from_seed = false;
        wire::BallotNumber number{};
        bool carried = false;  // according to the proposer, a promise carried the view
        View view{};
        Difference difference{};
        TimePoint since{};
        TimePoint until{};
    };
    enum class Verdict : std::uint8_t { agree, wait, refuse };

    void begin(TimePoint now);
    void settle();
    void pump();

    // Messages.
    bool knows(const Identity& from, bool from_seed) const;
    void answer_stranger(const Identity& from, const Message& message);
    void on_heartbeat(const Identity& from, const wire::Heartbeat& message);
    void on_view(const Identity& from, bool from_seed, const View& view);
    void on_ballot(const Identity& from, bool from_seed, const wire::Ballot& ballot);
    std::size_t informants() const;
    void probe_all();
    void send(const NodeId& to, Message message);
    void send_views(const NodeId& to, Epoch known);
    void tell_everyone(const View& old, const View& view);

    // The voter.
    bool votes() const;
    void on_prepare(const Identity& from, const wire::Ballot& ballot);
    void on_accept(const Identity& from, bool from_seed, const wire::Ballot& ballot);
    Verdict judge(const Pending& pending);
    Verdict opinion(const Pending& pending);
    Verdict opinion_on(const Member& member, const Pending& pending, bool left);
    bool may_be_chosen(const Pending& pending);
    void decide_pending();
    void vote_for(const Pending& pending);
    void refuse(const NodeId& to, const wire::BallotNumber& number,
                const wire::BallotNumber& joined);

    // The proposer.
    Changes wanted() const;
    bool may_propose() const;
    std::optional<TimePoint> loose_end_at() const;
    Duration own_delay();
    Duration pause();
    void hold_off();
    void consider();
    void begin_ballot();
    void resend();
    void on_promise(const Identity& from, const wire::Ballot& ballot);
    void on_refused(const Identity& from, const wire::Ballot& ballot);
    void advance_ballot();
    void send_accepts();
    void drop_served_joiners();
    void joiners_refused();
    bool was_member(const Member& member) const;
    bool served(const Joiner& joiner, const std::vector<Joiner>& before) const;

    void decide(const View& view);

    Identity self_;
    Options options_;
    Timing timing_;
    Random random_;
    TimePoint now_;
    Detector detector_;
    Acceptor acceptor_;
    Learner learner_{};
    Proposer proposer_{};
    std::vector<View> history_{};  // the last decided views, oldest first
    std::optional<Pending> pending_{};
    TimePoint voted_at_{};    // the last time
    TimePoint vouched_at_{};  // when a node told this one about a view that is not confirmed yet
    std::vector<Joiner> joiners_{};
    bool one_by_one_ = false;           // voters refused a joiner: propose them one at a time
    std::vector<Voter> removed_{};      // former members, which must not join again
    std::optional<Witness> witness_{};  // to propose
    bool leaving_ = false;
    bool over_ = false;  // this node was evicted

    struct Sent {
        NodeId node{};
        TimePoint at{};
    };
    std::vector<Sent> views_sent_{};  // limits how often a node receives views
    std::deque<std::pair<Identity, Message>> loopback_{};
    std::deque<Outgoing> outgoing_{};
    std::deque<Event> events_{};
};

}  // namespace nexar::membership
