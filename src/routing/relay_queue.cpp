#include "routing/relay_queue.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace nexar::routing {

RelayQueue::RelayQueue(const RelayLimits& limits, std::uint64_t hash_seed)
    : limits_(limits), flows_(0, PairHash{.seed = hash_seed}) {}

RelayQueue::~RelayQueue() {
    while (oldest_ != nullptr) take_first(*oldest_->flow);
}

bool RelayQueue::push(TimePoint now, const Pair& pair, std::vector<std::byte> datagram) {
    expire(now);
    NEXAR_ASSERT(newest_ == nullptr || newest_->since <= now, "time never goes back");
    ++counts_.queued;
    const std::size_t cost = charge(datagram);
    if (!make_room(pair, cost)) {
        ++counts_.dropped_full;
        return false;
    }
    quantum_ = std::max(quantum_, datagram.size());
    Flow& flow = flow_of(pair);
    append(flow, waiting_.make(std::move(datagram), now, flow));
    bytes_ += cost;
    flow.bytes += cost;
    grown(flow);
    return true;
}

std::optional<std::vector<std::byte>> RelayQueue::pop(TimePoint now) {
    expire(now);
    while (turn_ != nullptr) {
        Flow& flow = *turn_;
        const std::size_t size = flow.first->datagram.size();
        if (size <= flow.deficit) {
            flow.deficit -= size;
            ++counts_.sent;
            return take_first(flow);
        }
        // The quantum of its next turn is added now, as for a new pair in join_turns().
        const std::size_t rest = flow.deficit;
        leave_turns(flow);
        join_turns(flow);
        flow.deficit += rest;
    }
    return std::nullopt;
}

void RelayQueue::expire(TimePoint now) {
    while (oldest_ != nullptr && now - oldest_->since >= limits_.longest) {
        // The oldest of all is the first of its pair.
        take_first(*oldest_->flow);
        ++counts_.dropped_old;
    }
}

std::optional<TimePoint> RelayQueue::next_deadline() const {
    if (oldest_ == nullptr) return std::nullopt;
    return oldest_->since + limits_.longest;
}

std::size_t RelayQueue::bytes_of(const Pair& pair) const {
    const auto found = flows_.find(pair);
    return found == flows_.end() ? 0 : found->second.bytes;
}

/// Returns false if the datagram must be refused instead.
bool RelayQueue::make_room(const Pair& pair, std::size_t cost) {
    if (cost > std::min(limits_.pair_bytes, limits_.total_bytes)) return false;
    const auto found = flows_.find(pair);
    if (found == flows_.end()) {
        if (flows_.size() >= limits_.pairs) return false;
    } else {
        Flow& flow = found->second;
        for (bool more = true; more && flow.bytes + cost > limits_.pair_bytes;) {
            more = flow.first != flow.last;  // else the flow ends with it
            take_first(flow);
            ++counts_.dropped_full;
        }
    }
    while (bytes_ + cost > limits_.total_bytes) {
        take_first(*by_size_.front());
        ++counts_.dropped_full;
    }
    return true;
}

RelayQueue::Flow& RelayQueue::flow_of(const Pair& pair) {
    const auto [found, is_new] = flows_.try_emplace(pair);
    Flow& flow = found->second;
    if (is_new) {
        flow.pair = pair;
        join_turns(flow);
        by_size_.push_back(&flow);
        flow.place = by_size_.size() - 1;
    }
    return flow;
}

void RelayQueue::append(Flow& flow, Waiting& datagram) noexcept {
    (flow.last == nullptr ? flow.first : flow.last->next) = &datagram;
    flow.last = &datagram;
    datagram.older = newest_;
    (newest_ == nullptr ? oldest_ : newest_->newer) = &datagram;
    newest_ = &datagram;
}

/// Ends the flow with its last datagram.
std::vector<std::byte> RelayQueue::take_first(Flow& flow) {
    Waiting& first = *flow.first;
    const std::size_t cost = charge(first.datagram);
    bytes_ -= cost;
    flow.bytes -= cost;
    flow.first = first.next;
    unlink(first);
    std::vector<std::byte> datagram = std::move(first.datagram);
    waiting_.end(first);
    if (flow.first == nullptr) {
        end_flow(flow);
    } else {
        shrunk(flow);
    }
    return datagram;
}

void RelayQueue::unlink(Waiting& datagram) noexcept {
    (datagram.older == nullptr ? oldest_ : datagram.older->newer) = datagram.newer;
    (datagram.newer == nullptr ? newest_ : datagram.newer->older) = datagram.older;
}

void RelayQueue::end_flow(Flow& flow) {
    NEXAR_ASSERT(flow.bytes == 0);
    leave_turns(flow);
    Flow& moved = *by_size_.back();
    by_size_.pop_back();
    if (&moved != &flow) {
        place_at(flow.place, moved);
        grown(moved);
        shrunk(moved);
    }
    const Pair pair = flow.pair;  // a copy: erase() destroys the flow
    flows_.erase(pair);
}

void RelayQueue::join_turns(Flow& flow) noexcept {
    flow.deficit = quantum_;
    flow.before = last_turn_;
    flow.after = nullptr;
    (last_turn_ == nullptr ? turn_ : last_turn_->after) = &flow;
    last_turn_ = &flow;
}

void RelayQueue::leave_turns(Flow& flow) noexcept {
    (flow.before == nullptr ? turn_ : flow.before->after) = flow.after;
    (flow.after == nullptr ? last_turn_ : flow.after->before) = flow.before;
}

void RelayQueue::place_at(std::size_t place, Flow& flow) noexcept {
    by_size_[place] = &flow;
    flow.place = place;
}

/// Moves a flow up in the heap as far as its bytes need it.
void RelayQueue::grown(Flow& flow) noexcept {
    while (flow.place > 0) {
        const std::size_t place = flow.place;
        Flow& parent = *by_size_[(place - 1) / 2];
        if (parent.bytes >= flow.bytes) return;
        place_at((place - 1) / 2, flow);
        place_at(place, parent);
    }
}

/// Moves a flow down in the heap as far as its bytes need it.
void RelayQueue::shrunk(Flow& flow) noexcept {
    for (;;) {
        const std::size_t place = flow.place;
        std::size_t child = 2 * place + 1;
        if (child >= by_size_.size()) return;
        if (child + 1 < by_size_.size() && by_size_[child + 1]->bytes > by_size_[child]->bytes) {
            ++child;
        }
        Flow& larger = *by_size_[child];
        if (larger.bytes <= flow.bytes) return;
        place_at(child, flow);
        place_at(place, larger);
    }
}

}  // namespace nexar::routing
