#pragma once

#include <cstdint>

/// Bugs that a test plants in this layer, to prove that the simulation finds them. Only the copy of
/// the layer that tests/sim builds with NEXAR_PLANTED_BUGS contains them.
namespace nexar::membership {

enum class Bug : std::uint8_t {
    none,
    skip_epoch_check,          // votes for a view whatever its epoch is
    small_majority,            // one voter less than a majority decides
    forgotten_timer,           // a ballot that loses messages is never retried
    stale_vote_counted,        // counts votes of different ballots together
    promise_forgotten,         // a promise does not stop votes in lower ballots
    accept_without_promise,    // proposes without asking for promises
    accepted_value_ignored,    // proposes its own value although a promise carried one
    witness_votes_when_odd,    // counts the witness as a voter of an odd number of members
    answer_before_keeping,     // answers before the vote is on disk
    restored_witness_votes,    // a new incarnation of the witness votes
    join_by_seed_alone,        // a seed commits a join without the voters
    rank_reused,               // a joiner gets the lowest free rank
    token_spent_twice,         // the view forgets the tokens of its joiners
    eviction_although_heard,   // proposes and votes for evictions whatever others hear
    recovery_ignored,          // a member that was unreachable stays so
    evicted_not_told,          // a former member never learns that it was evicted
    minority_commits,          // counts only the voters that it reaches
    stale_view_adopted,        // adopts views of lower epochs
    single_accepted_trusted,   // a single vote decides
    number_ignored,            // a late heartbeat proves that its sender lives
    left_as_lost,              // forgets which members left in good order
    vote_not_reported,         // a promise does not carry the last vote
    ballot_number_reused,      // two ballots of a proposer have the same number
    hint_ignored,              // a process that ended is noticed only by its silence
    view_not_resent,           // a member that missed a view never receives it
    self_in_own_quorum_twice,  // a proposer counts its own promise twice
    joiners_forgotten,         // a seed drops its joiners when a ballot fails
    dead_relay_accuses,        // members that reach another one only through relays may accuse it
    count
};

#ifdef NEXAR_PLANTED_BUGS
/// The bug that this run contains; set by the test.
inline Bug planted_bug = Bug::none;
inline bool planted(Bug bug) noexcept {
    return planted_bug == bug;
}
#else
constexpr bool planted(Bug /*bug*/) noexcept {
    return false;
}
#endif

}  // namespace nexar::membership
