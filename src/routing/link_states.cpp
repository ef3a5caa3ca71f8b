#include "routing/link_states.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "wire/limits.hpp"

namespace nexar::routing {

namespace {

RankPair pair_of(Rank a, Rank b) {
    return {std::min(a, b), std::max(a, b)};
}

Error violation(Rank from, const wire::LinkState& state, std::string_view what) {
    return {Errc::protocol_violation, fmt::format("rank {} sent a link state of rank {} {}",
                                                  from.value(), state.origin.value(), what)};
}

// The codec refuses such states too, but a caller need not have used it.
Result<void> check_form(Rank from, const wire::LinkState& state) {
    using std::ranges::adjacent_find;
    if (state.version == 0 || state.epoch == Epoch(0)) {
        return violation(from, state, "without a version or an epoch");
    }
    if (state.down.size() > wire::kMaxDownLinks) {
        return violation(from, state, "that names too many broken links");
    }
    if (adjacent_find(state.down, std::ranges::greater_equal{}) != state.down.end()) {
        return violation(from, state, "whose broken links are not in strictly ascending order");
    }
    if (std::ranges::binary_search(state.down, state.origin)) {
        return violation(from, state, "that names its origin as the other end of a broken link");
    }
    return {};
}

}  // namespace

LinkStates::LinkStates(const ClusterId& cluster, const port::Signer& signer)
    : cluster_(cluster), signer_(&signer) {}

// Views.

void LinkStates::adopt(TimePoint now, const View& view, Rank me) {
    if (view.epoch <= epoch_) return;
    std::map<Rank, Known> before = std::move(members_);
    members_.clear();
    for (const Member& one : view.members) {
        members_.emplace(one.rank, Known{one.incarnation, one.key_hash});
    }
    NEXAR_ASSERT(members_.contains(me), "a node adopts only views that contain it");
    NEXAR_ASSERT(epoch_ == Epoch(0) || me == me_, "a node keeps its rank as long as it lives");
    epoch_ = view.epoch;
    me_ = me;
    is_outdated_ = version_ != 0;
    std::erase_if(down_, [this](Rank rank) { return rank == me_ || !members_.contains(rank); });

    const std::vector<RankPair> pairs = broken();
    const std::uint64_t changes = changes_;
    forget_the_departed(before);
    count_again();
    // Nobody could see the sets in between.
    changes_ = broken() == pairs ? changes : changes + 1;

    for (const auto& [from, neighbour] : neighbours_) take_all(now, from, &Neighbour::early);
}

void LinkStates::forget_the_departed(const std::map<Rank, Known>& before) {
    for (const auto& [rank, known] : before) {
        const auto still = members_.find(rank);
        if (still != members_.end() && still->second.incarnation == known.incarnation) continue;
        if (origins_.contains(rank)) count(rank, {});
        origins_.erase(rank);
        if (still == members_.end()) disconnected(rank);
        for (auto& [other, neighbour] : neighbours_) {
            neighbour.versions.erase(rank);
            neighbour.pending.erase(rank);
            neighbour.unverified.erase(rank);
            if (neighbour.pending.empty()) busy_.erase(other);
        }
    }
}

void LinkStates::count_again() {
    for (const auto& [rank, origin] : origins_) {
        if (rank != me_ && origin.newest != nullptr) count(rank, origin.newest->down);
    }
    count(me_, down_);
}

// What this node says.

void LinkStates::set_down(TimePoint now, std::span<const Rank> ranks) {
    std::vector<Rank> down(ranks.begin(), ranks.end());
    std::ranges::sort(down);
    const auto same = std::ranges::unique(down);
    down.erase(same.begin(), same.end());
    if (epoch_ != Epoch(0)) std::erase(down, me_);
    if (down.size() > wire::kMaxDownLinks) down.resize(wire::kMaxDownLinks);
    if (down == down_) return;
    down_ = std::move(down);
    if (epoch_ == Epoch(0)) return;
    count(me_, down_);
    if (must_publish() && now >= may_publish_at_) publish(now);
}

bool LinkStates::must_publish() const {
    if (epoch_ == Epoch(0)) return false;
    const auto own = origins_.find(me_);
    if (own == origins_.end() || own->second.newest == nullptr) return !down_.empty();
    const wire::LinkState& published = *own->second.newest;
    return published.down != down_ || (is_outdated_ && !published.down.empty());
}

void LinkStates::publish(TimePoint now) {
    auto state = std::make_shared<wire::LinkState>();
    state->origin = me_;
    state->incarnation = members_.at(me_).incarnation.value();
    state->epoch = epoch_;
    state->version = ++version_;
    state->down = down_;
    state->key = signer_->key();
    state->signature = signer_->sign(wire::signed_bytes(cluster_, *state));
    is_outdated_ = false;
    may_publish_at_ = now + kVersionInterval;
    store(state, me_);
}

// Neighbours.

void LinkStates::connected(TimePoint /*now*/, Rank neighbour) {
    disconnected(neighbour);
    Neighbour& added = neighbours_[neighbour];
    for (const auto& [rank, origin] : origins_) {
        if (origin.newest == nullptr || origin.newest->down.empty()) continue;
        if (forwards(*origin.newest, neighbour)) offer(neighbour, added, rank);
    }
}

void LinkStates::disconnected(Rank neighbour) {
    neighbours_.erase(neighbour);
    busy_.erase(neighbour);
}

void LinkStates::offer(Rank to, Neighbour& neighbour, Rank origin) {
    if (neighbour.versions[origin] >= origins_.at(origin).newest->version) return;
    neighbour.pending.insert(origin);
    busy_.insert(to);
}

std::optional<LinkStates::Outgoing> LinkStates::poll_outgoing(TimePoint now) {
    if (must_publish() && now >= may_publish_at_) publish(now);
    if (verify_at_ && now >= *verify_at_) verify_waiting(now);
    auto next = busy_.upper_bound(last_served_);
    for (std::size_t left = busy_.size(); left > 0; --left) {
        if (next == busy_.end()) next = busy_.begin();
        const Rank to = *next++;  // first, because next_for() may erase the element
        if (auto outgoing = next_for(now, to, neighbours_.at(to))) return outgoing;
    }
    return std::nullopt;
}

std::optional<LinkStates::Outgoing> LinkStates::next_for(TimePoint now, Rank to,
                                                         Neighbour& neighbour) {
    while (!neighbour.pending.empty() && neighbour.sending.ready(now)) {
        const Rank origin = *neighbour.pending.begin();
        neighbour.pending.erase(neighbour.pending.begin());
        if (neighbour.pending.empty()) busy_.erase(to);
        const State& newest = origins_.at(origin).newest;
        std::uint64_t& version = neighbour.versions[origin];
        if (version >= newest->version) continue;  // it has sent that one itself
        version = newest->version;
        neighbour.sending.take(now);
        last_served_ = to;
        return Outgoing{.to = to, .state = newest};
    }
    return std::nullopt;
}

std::optional<TimePoint> LinkStates::next_deadline() const {
    std::optional<TimePoint> first = verify_at_;
    const auto also = [&first](TimePoint time) { first = first ? std::min(*first, time) : time; };
    if (must_publish()) also(may_publish_at_);
    for (const Rank rank : busy_) also(neighbours_.at(rank).sending.ready_at());
    return first;
}

// What others say.

Result<void> LinkStates::handle(TimePoint now, Rank from, wire::LinkState state) {
    const auto found = neighbours_.find(from);
    if (found == neighbours_.end()) return {};
    Neighbour& neighbour = found->second;
    if (neighbour.violation) return *neighbour.violation;
    Result<void> taken = check_form(from, state);
    if (taken) {
        taken = take(now, from, std::make_shared<const wire::LinkState>(std::move(state)));
    }
    if (!taken) neighbour.violation = taken.error();
    return taken;
}

bool LinkStates::is_current(const wire::LinkState& state) const {
    const auto found = members_.find(state.origin);
    return found != members_.end() && found->second.incarnation.value() == state.incarnation;
}

Result<void> LinkStates::take(TimePoint now, Rank from, const State& state) {
    const Rank rank = state->origin;
    Neighbour& neighbour = neighbours_.at(from);
    if (!is_current(*state)) {
        // The origin's view contains the origin: without it, ours is a later one or not yet that.
        if (state->epoch > epoch_) keep_waiting(neighbour.early, state);
        return {};
    }
    Origin& origin = origins_[rank];
    if (origin.newest != nullptr && state->version <= origin.newest->version) {
        std::uint64_t& version = neighbour.versions[rank];
        version = std::max(version, state->version);
        offer(from, neighbour, rank);
        return {};
    }
    if (rank == me_) return {};  // nobody else can have signed it
    if (!neighbour.verifications.ready(now) || !origin.verifications.ready(now)) {
        keep_waiting(neighbour.unverified, state);
        if (!verify_at_) verify_at_ = now + kOriginInterval;
        return {};
    }
    neighbour.verifications.take(now);
    origin.verifications.take(now);
    if (!is_genuine(*state)) return violation(from, *state, "with a wrong signature");
    neighbour.versions[rank] = state->version;
    store(state, from);
    return {};
}

void LinkStates::keep_waiting(Waiting& waiting, const State& state) {
    const auto order = [](const wire::LinkState& one) {
        return std::pair(one.incarnation, one.version);
    };
    const auto found = waiting.find(state->origin);
    if (found != waiting.end()) {
        if (order(*found->second) < order(*state)) found->second = state;
    } else if (waiting.size() < kMaxWaiting) {
        waiting.emplace(state->origin, state);
    }
}

void LinkStates::verify_waiting(TimePoint now) {
    verify_at_.reset();
    for (const auto& [from, neighbour] : neighbours_) take_all(now, from, &Neighbour::unverified);
}

void LinkStates::take_all(TimePoint now, Rank from, Waiting Neighbour::* list) {
    Neighbour& neighbour = neighbours_.at(from);
    for (const auto& [origin, state] : std::exchange(neighbour.*list, {})) {
        if (neighbour.violation) return;
        if (const auto taken = take(now, from, state); !taken) neighbour.violation = taken.error();
    }
}

bool LinkStates::is_genuine(const wire::LinkState& state) const {
    return signer_->verify(wire::signed_bytes(cluster_, state), state.key,
                           members_.at(state.origin).key_hash, state.signature);
}

void LinkStates::store(const State& state, Rank from) {
    const Rank rank = state->origin;
    origins_[rank].newest = state;
    if (rank != me_) count(rank, state->down);
    for (auto& [to, neighbour] : neighbours_) {
        if (to != from && forwards(*state, to)) offer(to, neighbour, rank);
    }
}

/// The origin itself answers a state that is out of date with its newest one.
bool LinkStates::forwards(const wire::LinkState& state, Rank to) const {
    if (!complete_ || state.origin == me_ || state.origin == to) return true;
    return std::ranges::binary_search(state.down, to);
}

// Broken links.

std::vector<RankPair> LinkStates::broken() const {
    std::vector<RankPair> pairs;
    pairs.reserve(broken_.size());
    for (const auto& [pair, names] : broken_) pairs.push_back(pair);
    return pairs;
}

void LinkStates::count(Rank rank, std::span<const Rank> down) {
    std::vector<Rank> others(down.begin(), down.end());
    std::erase_if(others, [this](Rank other) { return !members_.contains(other); });
    std::vector<Rank>& counted = origins_[rank].counted;
    for (const Rank other : others) {
        if (!std::ranges::binary_search(counted, other)) add_pair(rank, other);
    }
    for (const Rank other : counted) {
        if (!std::ranges::binary_search(others, other)) remove_pair(rank, other);
    }
    counted = std::move(others);
}

void LinkStates::add_pair(Rank a, Rank b) {
    if (++broken_[pair_of(a, b)] == 1) ++changes_;
}

void LinkStates::remove_pair(Rank a, Rank b) {
    const auto found = broken_.find(pair_of(a, b));
    NEXAR_ASSERT(found != broken_.end());
    if (--found->second != 0) return;
    broken_.erase(found);
    ++changes_;
}

}  // namespace nexar::routing
