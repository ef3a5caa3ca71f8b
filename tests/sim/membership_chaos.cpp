#include "sim/membership_chaos.hpp"

#include <algorithm>
#include <cstring>

#include "sim/membership_topology.hpp"

namespace nexar::testing {
namespace {

MembershipTunnels::Settings random_tunnels(Random& random, const routing::Topology& topology) {
    return {.neighbours = neighbours_under(topology),
            .break_lanes = random.chance(0.5),
            .same_relays = random.chance(0.5)};
}

MembershipWorld::Settings random_settings(Random& random, const routing::Topology& topology) {
    MembershipWorld::Settings settings;
    constexpr std::array kBudgets = {500ms, 1000ms, 2000ms};
    settings.budget = kBudgets[random.below(kBudgets.size())];
    settings.delay = 100us + Duration(static_cast<Duration::rep>(random.below(
                                 static_cast<std::uint64_t>((settings.budget / 50).count()))));
    settings.jitter = random.uniform();
    settings.loss = random.chance(0.5) ? 0.3 * random.uniform() : 0;
    settings.duplicate = random.chance(0.5) ? 0.2 * random.uniform() : 0;
    settings.late = random.chance(0.5) ? settings.budget / 4 : Duration::zero();
    settings.crash_before_keeping = random.chance(0.3) ? 0.05 : 0;
    if (topology == routing::Topology()) return settings;
    settings.tunnels = random_tunnels(random, topology);
    settings.delay /= 2;  // of each hop
    return settings;
}

std::size_t random_members(Random& random) {
    const std::uint64_t dice = random.below(10);
    if (dice < 7) return 2 + random.below(4);
    return dice < 9 ? 6 + random.below(4) : 10 + random.below(7);
}

MembershipWorld& formed(MembershipWorld& world, Random& random) {
    const bool sparse = world.tunnels() != nullptr;
    const std::size_t members = sparse ? 5 + random.below(12) : random_members(random);
    world.form(members, 1 + random.below(2));
    return world;
}

}  // namespace

// Braces: the order of the draws must not depend on the compiler.
MembershipChaos::MembershipChaos(std::uint64_t seed, const routing::Topology& topology)
    : plan_(seed),
      world_{plan_.next(), random_settings(plan_, topology)},
      rules_(formed(world_, plan_)) {}

Duration MembershipChaos::between(Duration least, Duration most) {
    return least + Duration(static_cast<Duration::rep>(
                       below(static_cast<std::uint64_t>((most - least).count()) + 1)));
}

void MembershipChaos::later(Duration delay, std::function<void()> call) {
    world_.call_at(world_.now() + delay, std::move(call));
}

std::vector<std::size_t> MembershipChaos::members() const {
    std::vector<std::size_t> machines;
    for (std::size_t i = 0; i < world_.size(); ++i) {
        const auto& machine = world_.at(i);
        if (machine.running && !machine.seed && !machine.evicted) machines.push_back(i);
    }
    return machines;
}

std::vector<std::size_t> MembershipChaos::seeds(bool running) const {
    std::vector<std::size_t> machines;
    for (std::size_t i = 0; i < world_.size(); ++i) {
        if (world_.at(i).seed && world_.at(i).running == running) machines.push_back(i);
    }
    return machines;
}

std::size_t MembershipChaos::one_of(const std::vector<std::size_t>& machines) {
    return machines[below(machines.size())];
}

/// False if a majority of the voters, of the last view or of one that may follow, would be lost for
/// ever.
bool MembershipChaos::may_lose(std::size_t machine) const {
    if (strands_members(machine)) return false;
    std::vector<View> views = rules_.proposals();
    views.push_back(*rules_.last());
    views.push_back(newest_known(machine));
    const Identity& self = world_.at(machine).self;
    return std::ranges::all_of(views, [&](const View& view) {
        std::size_t running = rules_.running_voters(view);
        const Member* const member = view.find(self.node);
        const bool votes = (member != nullptr && member->incarnation == self.incarnation) ||
                           (view.witness_votes() && view.witness->seed == self.node &&
                            view.witness->incarnation == self.incarnation);
        if (votes && running > 0) --running;
        // Candidates that were admitted but do not run yet may never do so.
        if (running < view.majority()) return false;
        return world_.tunnels() == nullptr ||
               rules_.connected_voters(view, machine) >= view.majority();
    });
}

/// True if without `machine` a member is in a view that has lost its majority, and no node of that
/// view can tell it about a later one. It must not believe others.
bool MembershipChaos::strands_members(std::size_t machine) const {
    const auto runs = [&](std::size_t i, const NodeId& node) {
        const auto& one = world_.at(i);
        return i != machine && one.running && !one.evicted && one.self.node == node;
    };
    std::uint64_t relays = 0;
    for (const std::size_t i : members()) {
        if (i != machine) relays |= std::uint64_t{1} << i;
    }
    return std::ranges::any_of(members(), [&](std::size_t i) {
        if (i == machine) return false;
        const std::uint64_t reached = world_.tunnels() == nullptr
                                          ? ~std::uint64_t{0}
                                          : world_.tunnels()->reach_uncut(i, relays);
        const View& view = world_.at(i).membership->view();
        std::size_t voters = 0;
        bool told = false;
        const auto look = [&](const NodeId& node, Incarnation incarnation, bool votes) {
            const std::size_t other = world_.index_of(node);
            if (!runs(other, node)) return;
            const auto& one = world_.at(other);
            if (!one.seed && (reached >> other & 1U) == 0) return;
            const bool same = one.self.incarnation == incarnation;
            if (same && votes) ++voters;
            if (same || one.seed) told = told || one.membership->view().epoch > view.epoch;
        };
        for (const Member& one : view.members) look(one.node, one.incarnation, true);
        if (view.witness)
            look(view.witness->seed, view.witness->incarnation, view.members.size() % 2 == 0);
        return !told && voters < view.majority();
    });
}

/// The newest view that any running process but `machine` knows: what nobody knows is lost. An
/// evicted process tells nobody.
View MembershipChaos::newest_known(std::size_t machine) const {
    View newest;
    for (std::size_t i = 0; i < world_.size(); ++i) {
        if (i == machine || !world_.at(i).running || world_.at(i).evicted) continue;
        const View& view = world_.at(i).membership->view();
        if (view.epoch > newest.epoch) newest = view;
    }
    return newest;
}

ChaosResult MembershipChaos::run() {
    const Duration chaos = 60s;
    const unsigned faults = 10 + static_cast<unsigned>(below(20));
    for (unsigned i = 0; i < faults; ++i) {
        later(between(1s, chaos), [this] { fault(); });
    }
    later(100ms, [this] { tick(); });
    const auto failed = [this] { return !rules_.failure().empty(); };
    if (!world_.run_until_done(chaos + 1s, failed)) calm();
    return {.failure = rules_.failure(),
            .trace = world_.trace(),
            .steps = world_.steps(),
            .faults = faults_,
            .epochs = rules_.last()->epoch.value(),
            .majority_lost = lost_,
            .calm = converged_};
}

void MembershipChaos::fault() {
    ++faults_;
    if (world_.tunnels() != nullptr && chance(0.1)) return kill_relays();
    switch (below(18)) {
        case 0:
        case 1:
            return kill_member();
        case 2:
            return kill_seed();
        case 3:
            return close_member();
        case 4:
            return pause_member();
        case 5:
            return slow_member();
        case 6:
            return cut_pair(false);
        case 7:
            return cut_pair(true);
        case 8:
            return halve();
        case 9:
            return isolate();
        case 10:
            return break_link();
        case 11:
            return leave();
        case 12:
            return add_candidates();
        case 13:
            return change_witness();
        case 14:
            return lossy();
        default:
            return swap_sides();
    }
}

void MembershipChaos::kill_member() {
    const std::vector<std::size_t> running = members();
    if (running.size() < 2) return add_candidates();
    const std::size_t machine = one_of(running);
    if (!may_lose(machine)) return pause_member();
    change([&] { world_.kill(machine); });
    if (chance(0.4)) notice_death(machine, 0.8);
    world_.refuse_packets = chance(0.3);
    if (chance(0.3)) replay_heartbeats(machine);
    if (!chance(0.7)) return;
    // The process is started again, and joins as a new incarnation.
    later(between(10ms, 5s), [this, machine] {
        if (world_.at(machine).running) return;
        world_.new_incarnation(machine);
        candidates_.push_back({.machine = machine});
    });
}

/// A host notices that a process has ended; in a sparse topology it matters only to neighbours.
void MembershipChaos::notice_death(std::size_t machine, double probability) {
    for (const std::size_t other : members()) {
        if (chance(probability) && world_.near(other, machine))
            world_.hint(other, machine, membership::Hint::gone);
    }
}

/// Two neighbours of a member end at once, and all their neighbours notice it: the tunnels to the
/// member do not work for a while.
void MembershipChaos::kill_relays() {
    const std::vector<std::size_t> running = members();
    if (world_.tunnels() == nullptr || running.size() < 4) return kill_member();
    const std::size_t machine = one_of(running);
    std::vector<std::size_t> killed;
    for (const std::size_t other : running) {
        if (other == machine || killed.size() == 2) continue;
        if (!world_.near(machine, other) || !may_lose(other)) continue;
        change([&] { world_.kill(other); });
        killed.push_back(other);
    }
    for (const std::size_t one : killed) notice_death(one, 1);
}

void MembershipChaos::kill_seed() {
    const std::vector<std::size_t> running = seeds(true);
    if (running.empty()) return;
    const std::size_t machine = one_of(running);
    change([&] { world_.kill(machine); });
    later(between(10ms, 15s), [this, machine] { restart_seed(machine, chance(0.7)); });
}

/// Starts a seed with what it kept on disk, or without it: then it has a new incarnation and learns
/// the view from a member.
void MembershipChaos::restart_seed(std::size_t machine, bool intact) {
    if (world_.at(machine).running) return;
    proposed_.erase(machine);
    const std::vector<std::size_t> running = members();
    if (!intact && !running.empty() && may_lose(machine)) {
        world_.new_incarnation(machine);
        const View known = world_.membership(one_of(running)).view();
        const bool witness = known.witness && known.witness->seed == world_.at(machine).self.node;
        change([&] { world_.start(machine, {.view = known}); });
        rules_.started(machine, known);
        if (!witness) return;
        world_.membership(machine).propose_witness(
            world_.now(), {.seed = world_.at(machine).self.node,
                           .incarnation = world_.at(machine).self.incarnation});
        world_.drain(machine);
        return;
    }
    const membership::Vote disk = world_.at(machine).disk;
    change([&] { world_.start(machine, disk); });
    rules_.started(machine, disk.view);
}

/// A process ends in good order without a view: the others see its links close.
void MembershipChaos::close_member() {
    const std::vector<std::size_t> running = members();
    if (running.size() < 2) return add_candidates();
    const std::size_t machine = one_of(running);
    if (!may_lose(machine)) return pause_member();
    rules_.leaves(machine);
    change([&] { world_.kill(machine); });
    for (const std::size_t other : members()) {
        if (!world_.is_cut(machine, other) && world_.near(machine, other))
            world_.hint(other, machine, membership::Hint::left);
    }
}

void MembershipChaos::pause_member() {
    const std::vector<std::size_t> running = chance(0.8) ? members() : seeds(true);
    if (running.empty()) return;
    const std::size_t machine = one_of(running);
    change([&] { world_.pause(machine); });
    later(between(10ms, world_.settings().budget * 6), [this, machine] {
        // The calm phase has resumed it, and may have stopped it again.
        if (!calm_) change([&] { world_.resume(machine); });
    });
}

void MembershipChaos::slow_member() {
    const std::vector<std::size_t> running = members();
    if (running.empty()) return;
    const std::size_t machine = one_of(running);
    const Duration slow = between(1ms, world_.settings().budget / 2);
    change([&] { world_.at(machine).slow = slow; });
    later(between(1s, 10s),
          [this, machine] { change([&] { world_.at(machine).slow = Duration::zero(); }); });
}

void MembershipChaos::leave() {
    const std::vector<std::size_t> running = members();
    if (running.size() < 2) return add_candidates();
    const std::size_t machine = one_of(running);
    if (world_.at(machine).paused || !may_lose(machine)) return pause_member();
    rules_.leaves(machine);
    world_.membership(machine).leave(world_.now());
    world_.drain(machine);
}

void MembershipChaos::add_candidates() {
    if (world_.size() > 40) return;
    Candidate one{.machine = world_.add_machine(false)};
    if (chance(0.6)) std::memcpy(one.token.data(), &next_token_, sizeof next_token_);
    ++next_token_;
    // Two processes with one token: only one of them may join.
    if (one.token != std::array<std::byte, 16>{} && chance(0.5)) {
        Candidate other = one;
        other.machine = world_.add_machine(false);
        one.optional = other.optional = true;
        candidates_.push_back(other);
    }
    candidates_.push_back(one);
    if (chance(0.2)) later(between(1ms, 400ms), [this] { kill_seed(); });
}

void MembershipChaos::change_witness() {
    const std::vector<std::size_t> running = seeds(true);
    const std::vector<std::size_t> proposers = chance(0.5) ? members() : running;
    if (running.empty() || proposers.empty()) return;
    const Identity& seed = world_.at(one_of(running)).self;
    const std::size_t proposer = one_of(proposers);
    if (world_.at(proposer).paused) return;
    world_.membership(proposer).propose_witness(
        world_.now(), {.seed = seed.node, .incarnation = seed.incarnation});
    world_.drain(proposer);
}

void MembershipChaos::lossy() {
    const double before = world_.settings().loss;
    world_.settings().loss = 0.3;
    later(between(1s, 10s), [this, before] { world_.settings().loss = before; });
}

/// The network delivers an old heartbeat of a dead process again and again.
void MembershipChaos::replay_heartbeats(std::size_t machine) {
    world_.replay(machine, world_.settings().budget / 10, 30s);
}

}  // namespace nexar::testing
