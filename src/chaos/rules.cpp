#include "chaos/rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace nexar::chaos {

std::string text_of(const View& view) {
    std::string text = fmt::format("epoch {}:", view.epoch.value());
    for (const Member& member : view.members) text += fmt::format(" {}", member.rank.value());
    return text + fmt::format(", next {}", view.next_rank.value());
}

Rules::Rules(const sim::World& world, const Conditions& conditions, Duration budget)
    : world_(&world),
      conditions_(&conditions),
      budget_(budget),
      bound_(budget * 8 / 5 + std::chrono::seconds(1)),
      began_(world.now()) {}

Duration Rules::elapsed() const {
    return world_->now() - began_;
}

void Rules::fail(std::string_view rule, std::string what) {
    if (failed()) return;
    rule_ = rule;
    failure_ = std::move(what);
}

// P1

void Rules::check_time(TimePoint began, const std::string& what) {
    const TimePoint now = world_->now();
    const TimePoint since = std::max(began, conditions_->quiet_since(now));
    slowest_ = std::max(slowest_, now - since);
    if (now - since <= bound_) return;
    fail("P1",
         fmt::format("{} began {} ms ago, and nothing has disturbed the cluster for {} ms", what,
                     std::chrono::duration_cast<std::chrono::milliseconds>(now - began).count(),
                     std::chrono::duration_cast<std::chrono::milliseconds>(now - since).count()));
}

// P2

const View* Rules::last() const {
    return committed_.empty() ? nullptr : &committed_.rbegin()->second;
}

bool Rules::was_member(const NodeId& node) const {
    return std::ranges::any_of(granted_, [&](const auto& one) { return one.second == node; });
}

void Rules::viewed(std::size_t machine, const NodeId& node, const View& view, bool fresh) {
    const auto known = known_.find(node);
    if (!fresh && known != known_.end() && view.epoch <= known->second.epoch) {
        fail("P2", fmt::format("machine {} adopts {} after {}", machine, text_of(view),
                               text_of(known->second)));
    }
    known_[node] = view;
    const auto [at, first] = committed_.try_emplace(view.epoch, view);
    if (first) return first_commit(machine, view);
    if (at->second == view) return;
    fail("P2", fmt::format("two lists of members: {} and {}", text_of(at->second), text_of(view)));
}

void Rules::first_commit(std::size_t machine, const View& view) {
    const auto at = committed_.find(view.epoch);
    if (std::next(at) != committed_.end()) {
        fail("P2", fmt::format("{} is decided after a later view", text_of(view)));
        return;
    }
    if (at == committed_.begin()) {
        for (const Member& member : view.members) granted_[member.rank] = member.node;
        return;
    }
    const View& old = std::prev(at)->second;
    if (begins_anew(old, view)) {
        granted_.clear();
    } else if (old.epoch.value() + 1 != view.epoch.value()) {
        fail("P2", fmt::format("nobody decided the view before {}", text_of(view)));
    }
    check_ranks(old, view);
    check_removed(old, view);
    if (side_.empty() || world_->now() - cut_at_ < budget_ * 2) return;
    const bool side = side_.contains(machine);
    if (side_committed_ && *side_committed_ != side) {
        fail("P5", fmt::format("both sides of a partition decide views, the last one is {}",
                               text_of(view)));
    }
    side_committed_ = side;
}

/// True if the last members of a cluster left in good order, and other processes form a new cluster
/// with the same seed. The seed may know the view without members, or only that the last one left.
bool Rules::begins_anew(const View& old, const View& next) const {
    const bool first = next.next_rank.value() == next.members.size();
    if (old.members.empty()) return first;
    return first && old.members.size() == 1 && leaving_.contains(old.members.front().node) &&
           next.find(old.members.front().node) == nullptr;
}

void Rules::check_ranks(const View& old, const View& next) {
    if (next.next_rank < old.next_rank && !begins_anew(old, next)) {
        fail("P2", fmt::format("the next rank falls in {}", text_of(next)));
    }
    for (const Member& member : next.members) {
        const auto [at, fresh] = granted_.try_emplace(member.rank, member.node);
        if (!fresh && at->second != member.node) {
            fail("P2", fmt::format("rank {} was given twice, last in {}", member.rank.value(),
                                   text_of(next)));
        }
    }
}

// P4, P5

void Rules::partition(std::set<std::size_t> side) {
    side_ = std::move(side);
    cut_at_ = world_->now();
    side_committed_.reset();
}

void Rules::check_removed(const View& old, const View& next) {
    for (const Member& member : old.members) {
        if (next.find(member.node) != nullptr) continue;
        const bool left = std::ranges::find(next.left, member.rank) != next.left.end();
        if (leaving_.contains(member.node)) continue;
        if (left) {
            fail("P4", fmt::format("rank {} did not leave, but is listed as left in {}",
                                   member.rank.value(), text_of(next)));
        }
        const std::size_t machine = conditions_->machine_of(member.node);
        if (machine == Conditions::kNone || !reachable_by_majority(machine, old)) continue;
        fail("P4", fmt::format("rank {} was evicted although a majority reached it: {}",
                               member.rank.value(), text_of(next)));
    }
}

bool Rules::reachable_by_majority(std::size_t machine, const View& view) const {
    // Votes are cast before the decision, and a verdict takes a budget.
    const TimePoint since = world_->now() - budget_ * 5;
    if (!conditions_->good_since(machine, machine, since)) return false;
    std::size_t reach = 1;
    const auto own = known_.find(conditions_->at(machine).node);
    for (const Member& member : view.members) {
        const std::size_t other = conditions_->machine_of(member.node);
        if (other == Conditions::kNone || other == machine) continue;
        // A member that missed a view does not answer members that it has not heard of.
        if (own == known_.end() || own->second.find(member.node) == nullptr) continue;
        if (conditions_->good_since(machine, other, since)) ++reach;
    }
    if (view.witness_votes() && conditions_->good_since(machine, 0, since)) ++reach;
    return reach >= view.majority();
}

// P3

void Rules::agreed(ContextId context, std::uint64_t number, const Agreed& value) {
    ++counts.agreements;
    const auto [at, first] = agreements_.try_emplace(std::pair(context, number), value);
    if (first || at->second == value) return;
    const auto text = [](const Agreed& one) {
        std::vector<std::uint32_t> lost;
        lost.reserve(one.lost.size());
        for (const Rank rank : one.lost) lost.push_back(rank.value());
        return fmt::format("{} excluded, flags {:x}, lost [{}], epoch {}, creation {}, word {}",
                           one.plan.excluded.size(), one.flags, fmt::join(lost, " "),
                           one.epoch.value(), one.creation, one.words[0]);
    };
    fail("P3", fmt::format("agreement {} of communicator {:016x} ended differently: {}; {}", number,
                           context.value(), text(at->second), text(value)));
}

void Rules::made(ContextId context, const std::vector<NodeId>& nodes) {
    const auto [at, first] = worlds_.try_emplace(context, nodes);
    if (first || at->second == nodes) return;
    fail("P3", fmt::format("communicator {:016x} has {} members on one rank and {} on another",
                           context.value(), at->second.size(), nodes.size()));
}

// P6

std::uint64_t Rules::sends(ContextId context, const NodeId& from, const NodeId& to) {
    return ledgers_[{context, from, to}].sent++;
}

std::uint64_t Rules::receives(ContextId context, const NodeId& from, const NodeId& to) {
    ++counts.messages;
    Ledger& ledger = ledgers_[{context, from, to}];
    if (ledger.received >= ledger.sent) {
        fail("P6", fmt::format("a message arrives in communicator {:016x} that nobody sent",
                               context.value()));
    }
    return ledger.received++;
}

}  // namespace nexar::chaos
