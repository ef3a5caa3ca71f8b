#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "membership/planted.hpp"
#include "routing/topology.hpp"
#include "sim/membership_chaos.hpp"

namespace nexar::testing {

struct PlantedBug {
    membership::Bug bug{};
    std::string_view name{};
    std::uint64_t seed = 1;  // of a run that finds it
    std::string_view topology = "full";
};

// When the layer or the simulation changes, membership_planted_soak_tests prints other seeds.
inline constexpr std::array kPlantedBugs = std::to_array<PlantedBug>({
    {membership::Bug::skip_epoch_check, "skip_epoch_check", 1},
    {membership::Bug::small_majority, "small_majority", 14},
    {membership::Bug::forgotten_timer, "forgotten_timer", 2},
    {membership::Bug::stale_vote_counted, "stale_vote_counted", 11},
    {membership::Bug::promise_forgotten, "promise_forgotten", 9},
    {membership::Bug::accept_without_promise, "accept_without_promise", 13},
    {membership::Bug::accepted_value_ignored, "accepted_value_ignored", 35},
    {membership::Bug::witness_votes_when_odd, "witness_votes_when_odd", 5},
    {membership::Bug::answer_before_keeping, "answer_before_keeping", 32},
    {membership::Bug::restored_witness_votes, "restored_witness_votes", 25},
    {membership::Bug::join_by_seed_alone, "join_by_seed_alone", 1},
    {membership::Bug::rank_reused, "rank_reused", 3},
    {membership::Bug::token_spent_twice, "token_spent_twice", 4},
    {membership::Bug::eviction_although_heard, "eviction_although_heard", 3},
    {membership::Bug::recovery_ignored, "recovery_ignored", 3},
    {membership::Bug::evicted_not_told, "evicted_not_told", 1},
    {membership::Bug::minority_commits, "minority_commits", 1},
    {membership::Bug::stale_view_adopted, "stale_view_adopted", 1},
    {membership::Bug::single_accepted_trusted, "single_accepted_trusted", 31},
    {membership::Bug::number_ignored, "number_ignored", 1},
    {membership::Bug::left_as_lost, "left_as_lost", 4},
    {membership::Bug::vote_not_reported, "vote_not_reported", 35},
    {membership::Bug::ballot_number_reused, "ballot_number_reused", 20},
    {membership::Bug::hint_ignored, "hint_ignored", 22},
    {membership::Bug::view_not_resent, "view_not_resent", 1},
    {membership::Bug::self_in_own_quorum_twice, "self_in_own_quorum_twice", 20},
    {membership::Bug::joiners_forgotten, "joiners_forgotten", 23},
    {membership::Bug::dead_relay_accuses, "dead_relay_accuses", 25, "hypercube"},
});

/// What a run of this seed finds if the layer has the bug. A seed that fails anyway finds nothing.
inline std::optional<std::string> finding(const PlantedBug& planted, std::uint64_t seed) {
    const routing::Topology topology = routing::Topology::parse(planted.topology).value();
    membership::planted_bug = planted.bug;
    std::string failure = MembershipChaos(seed, topology).run().failure;
    membership::planted_bug = membership::Bug::none;
    if (failure.empty() || !MembershipChaos(seed, topology).run().failure.empty())
        return std::nullopt;
    return failure;
}

}  // namespace nexar::testing
