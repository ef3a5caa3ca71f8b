#include <algorithm>

#include "sim/membership_chaos.hpp"

/// Faults of the network: paths that do not work for a while.
namespace nexar::testing {

void MembershipChaos::cut_pair(bool both) {
    const std::size_t a = below(world_.size());
    const std::size_t b = below(world_.size());
    if (a == b) return;
    const auto set = [this, a, b, both](bool cut) {
        change([&] {
            world_.cut(a, b, cut);
            if (both) world_.cut(b, a, cut);
        });
    };
    set(true);
    later(between(10ms, world_.settings().budget * 8), [set] { set(false); });
}

void MembershipChaos::halve() {
    std::vector<std::size_t> side;
    std::vector<std::size_t> rest;
    for (std::size_t i = 0; i < world_.size(); ++i) (chance(0.5) ? side : rest).push_back(i);
    change([&] {
        for (const std::size_t a : side) {
            for (const std::size_t b : rest) world_.cut_both(a, b, true);
        }
    });
    rules_.partition(side);
    later(between(10ms, world_.settings().budget * 12), [this] {
        change([&] { world_.heal(); });
        rules_.partition_ends();
    });
}

/// Cuts these machines from all others.
void MembershipChaos::separate(const std::vector<std::size_t>& side) {
    change([&] {
        for (const std::size_t a : side) {
            for (std::size_t b = 0; b < world_.size(); ++b) {
                if (std::ranges::find(side, b) == side.end()) world_.cut_both(a, b, true);
            }
        }
    });
}

/// The seeds see one half of the members first and then only the other one, and crash in between:
/// while they write a vote, or after it, and some of them lose what they wrote.
void MembershipChaos::swap_sides() {
    std::vector<std::size_t> side;
    std::vector<std::size_t> rest;
    for (const std::size_t i : members()) (chance(0.5) ? side : rest).push_back(i);
    const Duration budget = world_.settings().budget;
    const double before = world_.settings().crash_before_keeping;
    world_.settings().crash_before_keeping = chance(0.5) ? 0.3 : before;
    separate(side);
    later(between(budget, budget * 3), [this, rest, before, budget] {
        if (calm_) return;
        world_.settings().crash_before_keeping = before;
        const bool intact = chance(0.5);
        for (const std::size_t seed : seeds(true)) {
            if (chance(0.5)) change([&] { world_.kill(seed); });
        }
        for (const std::size_t seed : seeds(false)) restart_seed(seed, intact);
        change([&] { world_.heal(); });
        separate(rest);
        later(between(budget, budget * 4), [this] { change([&] { world_.heal(); }); });
    });
}

void MembershipChaos::isolate() {
    const std::size_t machine = below(world_.size());
    const bool in = chance(0.6);
    const bool out = !in || chance(0.7);
    const auto set = [this, machine, in, out](bool cut) {
        change([&] {
            for (std::size_t other = 0; other < world_.size(); ++other) {
                if (other == machine) continue;
                if (in) world_.cut(other, machine, cut);
                if (out) world_.cut(machine, other, cut);
            }
        });
    };
    set(true);
    later(between(10ms, world_.settings().budget * 8), [set] { set(false); });
}

/// A link breaks and is made again: what was in flight is lost, and both ends notice.
void MembershipChaos::break_link() {
    const std::vector<std::size_t> running = members();
    if (running.size() < 2) return;
    const std::size_t a = one_of(running);
    const std::size_t b = one_of(running);
    if (a == b) return;
    const bool was = world_.is_cut(a, b);
    change([&] {
        world_.cut_both(a, b, true);
        if (!was) world_.cut_both(a, b, false);
    });
    world_.hint(a, b, membership::Hint::doubtful);
    world_.hint(b, a, membership::Hint::doubtful);
}

}  // namespace nexar::testing
