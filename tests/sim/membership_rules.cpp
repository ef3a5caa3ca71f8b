#include "sim/membership_rules.hpp"

#include <algorithm>
#include <cstdio>

#include "sim/membership_text.hpp"
#include "wire/view.hpp"

namespace nexar::testing {
namespace {

constexpr std::size_t kMost = 64;

bool contains(const View& view, const Member& member) {
    return std::ranges::any_of(view.members, [&](const Member& one) {
        return one.node == member.node && one.incarnation == member.incarnation;
    });
}

}  // namespace

MembershipRules::MembershipRules(MembershipWorld& world)
    : world_(world), last_bad_(kMost * kMost, TimePoint::min()) {
    for (std::size_t i = 0; i < world.size(); ++i) {
        if (!world.at(i).running) continue;
        const View& view = world.membership(i).view();
        known_[i] = view.epoch;
        if (!committed_.empty()) continue;
        committed_[view.epoch] = view;
        for (const Member& member : view.members)
            granted_[member.rank] = {member.node, member.incarnation};
    }
    world.watch([this](std::size_t machine, const membership::Event& one) { event(machine, one); });
    world.watch_messages([this](std::size_t, const membership::Outgoing& one) { message(one); });
}

void MembershipRules::fail(std::string what) {
    if (!failure_.empty()) return;
    failure_ = std::to_string(world_.elapsed().count() / 1'000'000) + " ms: " + std::move(what);
}

const View* MembershipRules::last() const {
    return committed_.empty() ? nullptr : &committed_.rbegin()->second;
}

const View* MembershipRules::committed(Epoch epoch) const {
    const auto at = committed_.find(epoch);
    return at == committed_.end() ? nullptr : &at->second;
}

std::size_t MembershipRules::running_voters(const View& view) const {
    std::size_t running = 0;
    const auto runs = [&](const NodeId& node, Incarnation incarnation) {
        const auto& machine = world_.at(world_.index_of(node));
        return machine.running && !machine.evicted && machine.self.incarnation == incarnation;
    };
    for (const Member& member : view.members) running += runs(member.node, member.incarnation);
    if (view.members.size() % 2 == 0 && view.witness)
        running += runs(view.witness->seed, view.witness->incarnation);
    return running;
}

std::vector<View> MembershipRules::proposals() const {
    std::vector<View> views;
    views.reserve(proposals_.size());
    for (const Proposal& one : proposals_) {
        if (one.view.epoch > last()->epoch) views.push_back(one.view);
    }
    return views;
}

bool MembershipRules::sick(std::size_t machine) const {
    const auto& one = world_.at(machine);
    return !one.running || one.paused || one.slow > Duration::zero();
}

/// The members that this one reaches through healthy ones, a bit for each; in a sparse topology.
std::uint64_t MembershipRules::reached_by(std::size_t member) const {
    if (world_.tunnels() == nullptr) return 0;
    std::uint64_t healthy = world_.tunnels()->relaying();
    for (std::size_t i = 0; i < world_.size(); ++i) {
        if (sick(i)) healthy &= ~(std::uint64_t{1} << i);
    }
    return world_.tunnels()->reach(member, healthy);
}

bool MembershipRules::bad(std::size_t a, std::size_t b, std::uint64_t reached) const {
    if (sick(a) || sick(b)) return true;
    const bool relayed = world_.tunnels() != nullptr && !world_.at(a).seed && !world_.at(b).seed;
    if (relayed) return (reached >> b & 1U) == 0;
    return a != b && (world_.is_cut(a, b) || world_.is_cut(b, a));
}

void MembershipRules::health_changes() {
    for (std::size_t a = 0; a < world_.size(); ++a) {
        const std::uint64_t reached = reached_by(a);
        for (std::size_t b = 0; b < world_.size(); ++b) {
            if (bad(a, b, reached)) last_bad_[a * kMost + b] = world_.now();
            const bool across = side_.contains(a) != side_.contains(b);
            if (across && !world_.is_cut(a, b)) side_.clear();
        }
    }
}

std::size_t MembershipRules::connected_voters(const View& view, std::size_t without) const {
    const auto runs = [&](const NodeId& node, Incarnation incarnation) {
        const std::size_t index = world_.index_of(node);
        const auto& machine = world_.at(index);
        return index != without && machine.running && !machine.evicted &&
               machine.self.incarnation == incarnation;
    };
    std::map<NodeId, std::vector<NodeId>> neighbours;  // of those that run
    for (const Member& member : view.members) {
        if (runs(member.node, member.incarnation))
            neighbours[member.node] = world_.settings().tunnels.neighbours(view, member.node);
    }
    std::size_t most = 0;
    std::set<NodeId> found;
    for (const auto& start : neighbours) {
        std::vector<NodeId> side{start.first};
        if (!found.insert(start.first).second) continue;
        for (std::size_t i = 0; i < side.size(); ++i) {
            for (const NodeId& next : neighbours[side[i]]) {
                if (neighbours.contains(next) && found.insert(next).second) side.push_back(next);
            }
        }
        most = std::max(most, side.size());
    }
    const bool votes = view.members.size() % 2 == 0 && view.witness;
    return most + (votes && runs(view.witness->seed, view.witness->incarnation) ? 1 : 0);
}

bool MembershipRules::good_since(std::size_t a, std::size_t b, TimePoint since) const {
    return !bad(a, b) && last_bad_[a * kMost + b] < since;
}

void MembershipRules::leaves(std::size_t machine) {
    const Identity& self = world_.at(machine).self;
    leaving_.insert({self.node, self.incarnation});
}

void MembershipRules::partition(std::vector<std::size_t> side) {
    side_ = {side.begin(), side.end()};
    cut_at_ = world_.now();
    side_committed_.reset();
}

void MembershipRules::message(const membership::Outgoing& outgoing) {
    const auto* const ballot = std::get_if<wire::Ballot>(&outgoing.message);
    if (ballot == nullptr || ballot->step != wire::BallotStep::accept) return;
    View view = wire::from_wire(ballot->view.front());
    if (view.epoch <= last()->epoch) return;
    for (const Proposal& one : proposals_) {
        if (one.view == view) return;
    }
    proposals_.push_back({.view = std::move(view), .first = world_.now()});
}

void MembershipRules::event(std::size_t machine, const membership::Event& event) {
    if (const auto* const decided = std::get_if<membership::Decided>(&event)) {
        // The links to its new neighbours come up after this.
        if (world_.tunnels() != nullptr) health_changes();
        commit(machine, decided->view);
    }
    if (const auto* const evicted = std::get_if<membership::Evicted>(&event)) {
        const Identity& self = world_.at(machine).self;
        if (contains(evicted->view, {.node = self.node, .incarnation = self.incarnation}))
            fail("a node reports its eviction by a view that contains it");
        commit(machine, evicted->view);
    }
}

void MembershipRules::commit(std::size_t machine, const View& view) {
    Epoch& known = known_[machine];
    if (view.epoch <= known && known != Epoch{})
        fail("epoch " + std::to_string(view.epoch.value()) + " follows " +
             std::to_string(known.value()) + " at machine " + std::to_string(machine));
    known = view.epoch;
    const auto [at, first] = committed_.try_emplace(view.epoch, view);
    if (!first) {
        if (at->second != view) fail("two lists: " + text_of(at->second) + " and " + text_of(view));
        return;
    }
    first_commit(machine, view);
}

void MembershipRules::first_commit(std::size_t machine, const View& view) {
    const View* const old = committed(Epoch(view.epoch.value() - 1));
    if (old == nullptr) {
        fail("nobody committed the view before " + text_of(view));
        return;
    }
    if (std::next(committed_.find(view.epoch)) != committed_.end())
        fail("a view is committed after a later one: " + text_of(view));
    check_step(*old, view);
    check_joined(*old, view);
    check_removed(*old, view);
    for (const Member& member : old->members) {
        if (!contains(view, member)) removed_.insert({member.node, member.incarnation});
    }
    std::erase_if(proposals_, [&](const Proposal& one) { return one.view.epoch <= view.epoch; });
    if (side_.empty() || world_.now() - cut_at_ < world_.settings().budget * 2) return;
    const bool side = side_.contains(machine);
    if (side_committed_ && *side_committed_ != side) fail("both sides commit: " + text_of(view));
    side_committed_ = side;
}

void MembershipRules::check_step(const View& old, const View& next) {
    if (next.next_rank < old.next_rank) fail("next_rank falls in " + text_of(next));
    for (std::size_t i = 1; i < next.members.size(); ++i) {
        if (next.members[i - 1].rank >= next.members[i].rank) fail("ranks in " + text_of(next));
    }
    for (const Member& member : next.members) {
        if (member.rank >= next.next_rank) fail("a rank above next_rank in " + text_of(next));
        const auto same = [&](const Member& one) { return one.node == member.node; };
        if (std::ranges::count_if(next.members, same) != 1)
            fail("a node twice in " + text_of(next));
    }
}

void MembershipRules::check_joined(const View& old, const View& next) {
    for (const Member& member : next.members) {
        if (contains(old, member)) continue;
        if (removed_.contains({member.node, member.incarnation}))
            fail("a removed process is back in " + text_of(next));
        const auto [at, fresh] =
            granted_.try_emplace(member.rank, Who{member.node, member.incarnation});
        if (!fresh)
            fail("rank " + std::to_string(member.rank.value()) + " twice in " + text_of(next));
        if (member.token == std::array<std::byte, 16>{}) continue;
        if (!tokens_.insert(member.token).second)
            fail("a token was spent twice in " + text_of(next));
    }
}

void MembershipRules::check_removed(const View& old, const View& next) {
    TimePoint proposed = world_.now();
    for (const Proposal& one : proposals_) {
        if (one.view == next) proposed = one.first;
    }
    for (const Member& member : old.members) {
        if (contains(next, member)) continue;
        const Who who{member.node, member.incarnation};
        const bool left = std::ranges::find(next.left, member.rank) != next.left.end();
        const std::size_t machine = world_.index_of(member.node);
        const auto& process = world_.at(machine);
        if (left && leaving_.contains(who)) continue;
        if (left) fail("a member that did not leave is listed as left: " + text_of(next));
        if (!process.running || process.self.incarnation != member.incarnation) continue;
        const TimePoint since = proposed - world_.settings().budget * 3;
        if (reachable_by_majority(machine, old, since))
            fail("rank " + std::to_string(member.rank.value()) +
                 " was reachable by a majority, but is not in " + text_of(next));
    }
}

bool MembershipRules::reachable_by_majority(std::size_t machine, const View& view,
                                            TimePoint since) const {
    if (!good_since(machine, machine, since)) return false;
    std::size_t voters = view.members.size();
    std::size_t reach = 0;
    const auto count = [&](const NodeId& node, Incarnation incarnation) {
        const std::size_t other = world_.index_of(node);
        if (world_.at(other).self.incarnation != incarnation) return;
        // A member that missed the view does not answer members that it has not heard of.
        const View& known = world_.at(machine).membership->view();
        if (!world_.at(other).seed && known.find(node) == nullptr) return;
        if (good_since(machine, other, since) && good_since(other, other, since)) ++reach;
    };
    for (const Member& member : view.members) count(member.node, member.incarnation);
    if (view.members.size() % 2 == 0 && view.witness) {
        ++voters;
        count(view.witness->seed, view.witness->incarnation);
    }
    return reach >= voters / 2 + 1;
}

}  // namespace nexar::testing
