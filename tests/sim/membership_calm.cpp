#include <algorithm>

#include "sim/membership_chaos.hpp"

namespace nexar::testing {

/// Ten times per second: what runtimes do for processes that want to join, and for dead seeds.
void MembershipChaos::tick() {
    std::vector<std::vector<Member>> joiners(world_.size());  // by seed
    for (Candidate& one : candidates_) {
        const std::optional<Member> joiner = serve(one);
        if (joiner) joiners[one.seed].push_back(*joiner);
    }
    for (const std::size_t seed : seeds(true)) {
        std::vector<Member>& last = proposed_[seed];
        if (world_.at(seed).paused || last == joiners[seed]) continue;
        last = joiners[seed];
        world_.membership(seed).propose_members(world_.now(), joiners[seed]);
        world_.drain(seed);
    }
    std::erase_if(candidates_,
                  [&](const Candidate& one) { return world_.at(one.machine).running; });
    for (Candidate& one : candidates_) {
        // It was admitted, but evicted before it knew: it tries again as another incarnation.
        if (!rules_.removed(world_.at(one.machine).self)) continue;
        world_.new_incarnation(one.machine);
        one.token = {};
    }
    revive_seeds();
    later(100ms, [this] { tick(); });
}

/// A process that wants to join asks a seed until one of them knows a view that contains it.
/// Returns what the seed must propose.
std::optional<Member> MembershipChaos::serve(Candidate& candidate) {
    world_.at(candidate.machine).waiting = true;
    const std::vector<std::size_t> running = seeds(true);
    if (running.empty()) return std::nullopt;
    const std::size_t machine = candidate.machine;
    const auto answers = [&](std::size_t seed) {
        return std::ranges::find(running, seed) != running.end() && !world_.at(seed).paused &&
               !world_.is_cut(machine, seed) && !world_.is_cut(seed, machine);
    };
    if (!answers(candidate.seed) || chance(0.02)) candidate.seed = one_of(running);
    const std::size_t seed = candidate.seed;
    if (!answers(seed)) return std::nullopt;
    const Identity& self = world_.at(machine).self;
    const View view = world_.membership(seed).view();
    const Member* const member = view.find(self.node);
    if (member != nullptr && member->incarnation == self.incarnation) {
        change([&] { world_.start(machine, {.view = view}); });
        rules_.started(machine, view);
        return std::nullopt;
    }
    return Member{.node = self.node, .incarnation = self.incarnation, .token = candidate.token};
}

/// Seeds that crashed while they wrote their vote.
void MembershipChaos::revive_seeds() {
    for (const std::size_t machine : seeds(false)) {
        if (calm_ || chance(0.05)) restart_seed(machine, calm_ || chance(0.7));
    }
}

void MembershipChaos::calm() {
    calm_ = true;
    rules_.partition_ends();
    change([&] {
        world_.heal();
        for (std::size_t i = 0; i < world_.size(); ++i) {
            world_.at(i).slow = Duration::zero();
            world_.resume(i);
        }
    });
    world_.settings().loss = std::min(world_.settings().loss, 0.05);
    world_.settings().crash_before_keeping = 0;
    const auto ends = [this] { return !rules_.failure().empty(); };
    const TimePoint began = world_.now();
    const Duration limit = world_.settings().budget * 40;
    while (rules_.failure().empty() && world_.now() - began < limit) {
        if (disagreement().empty()) break;
        world_.run_until_done(world_.settings().budget / 5, ends);
    }
    converged_ = world_.now() - began;
    if (!rules_.failure().empty()) return;
    const std::string why = disagreement();
    if (!why.empty()) {
        std::vector<View> views = rules_.proposals();
        views.push_back(*rules_.last());
        views.push_back(newest_known(world_.size()));
        lost_ = std::ranges::any_of(views, [&](const View& view) {
            if (world_.tunnels() != nullptr &&
                rules_.connected_voters(view, world_.size()) < view.majority())
                return true;
            return rules_.running_voters(view) < view.majority();
        });
        lost_ = lost_ || strands_members(world_.size());
        if (!lost_) rules_.fail("no agreement in the calm phase: " + why);
        return;
    }
    last_failure();
}

/// Why the cluster has not converged; empty if it has.
std::string MembershipChaos::disagreement() const {
    const View& last = *rules_.last();
    for (const Member& member : last.members) {
        const auto& machine = world_.at(world_.index_of(member.node));
        if (!machine.running || machine.self.incarnation != member.incarnation)
            return "rank " + std::to_string(member.rank.value()) + " is dead";
    }
    for (const std::size_t i : members()) {
        const auto& machine = world_.at(i);
        const std::string name = "machine " + std::to_string(i);
        if (machine.membership->view() != last)
            return name + " is in epoch " +
                   std::to_string(machine.membership->view().epoch.value()) + " instead of " +
                   std::to_string(last.epoch.value());
        if (machine.minority) return name + " believes to be in a minority";
        if (!machine.unreachable.empty()) return name + " believes that a member is unreachable";
    }
    for (const Candidate& one : candidates_) {
        if (!one.optional && !world_.at(one.machine).running)
            return "machine " + std::to_string(one.machine) + " cannot join";
    }
    return {};
}

bool MembershipChaos::view_lacks(std::size_t machine, std::size_t missing) const {
    return world_.at(machine).membership->view().find(world_.at(missing).self.node) == nullptr;
}

/// One more failure, in a network without faults, must be noticed in time.
void MembershipChaos::last_failure() {
    world_.settings().loss = 0;
    world_.settings().duplicate = 0;
    world_.settings().late = Duration::zero();
    const Duration budget = world_.settings().budget;
    // A member that has just joined does not know yet whom it cannot reach.
    Rank next_rank{};
    while (rules_.failure().empty() && next_rank != rules_.last()->next_rank) {
        next_rank = rules_.last()->next_rank;
        world_.run_for(budget * 2);
    }
    if (!rules_.failure().empty() || !disagreement().empty()) return;
    const std::vector<std::size_t> running = members();
    if (running.size() < 2) return;
    const std::size_t machine = one_of(running);
    if (!may_lose(machine)) return;
    const std::uint64_t kind = below(4);
    Duration limit = budget * 16 / 10;
    world_.refuse_packets = kind == 1;
    change([&] { kind == 2 ? world_.pause(machine) : world_.kill(machine); });
    if (kind == 0) {
        notice_death(machine, 1);
        limit = running.size() > 2 ? budget / 4 : budget;
    }
    if (kind == 1) limit = running.size() > 2 ? budget * 45 / 100 : budget;
    limit += world_.settings().delay * 32;
    // The others give the member up a little later than its neighbours, and tunnels through it do
    // not work at first.
    if (world_.tunnels() != nullptr) {
        limit += world_.settings().delay * 96 + budget / 10;
        if (kind < 2) limit += world_.settings().tunnels.most_reroute;
    }
    if (kind == 3) replay_heartbeats(machine);
    const bool noticed = world_.run_until_done(limit, [&] {
        if (!rules_.failure().empty()) return true;
        return std::ranges::all_of(
            running, [&](std::size_t i) { return i == machine || view_lacks(i, machine); });
    });
    if (!noticed && rules_.last()->next_rank == next_rank)
        rules_.fail("a failure of kind " + std::to_string(kind) + " was not noticed in time");
}

}  // namespace nexar::testing
