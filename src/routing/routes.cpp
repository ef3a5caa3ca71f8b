#include "routing/routes.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include "base/assert.hpp"
#include "base/mix.hpp"

namespace nexar::routing {

namespace {

/// An alternative with what it is compared by.
struct Candidate {
    Alternative alternative{};
    std::uint64_t tie = 0;

    bool before(const Candidate& other) const noexcept {
        return std::tie(alternative.hops, tie, alternative.next) <
               std::tie(other.alternative.hops, other.tie, other.alternative.next);
    }
};

/// The best candidates so far, in order.
class Best {
public:
    void offer(Candidate candidate) noexcept {
        for (std::size_t i = 0; i < count_; ++i) {
            if (candidate.before(kept_[i])) std::swap(candidate, kept_[i]);
        }
        if (count_ < kept_.size()) kept_[count_++] = candidate;
    }

    std::span<const Candidate> kept() const noexcept { return std::span(kept_).first(count_); }

private:
    std::array<Candidate, Routes::kMostAlternatives> kept_{};
    std::size_t count_ = 0;
};

}  // namespace

Routes::Routes(std::shared_ptr<const Graph> graph, Position me, std::size_t most_cached)
    : graph_(std::move(graph)), me_(me), most_cached_(most_cached) {
    NEXAR_ASSERT(graph_ != nullptr && me_ < graph_->size());
    NEXAR_ASSERT(most_cached_ > 0);
}

void Routes::assume_broken(EdgeSet broken) {
    if (broken == broken_) return;
    broken_ = std::move(broken);
    entries_.clear();
    index_.clear();
}

bool Routes::usable(Position member) const noexcept {
    return graph_->adjacent(me_, member) && !broken_.contains({me_, member});
}

std::span<const Alternative> Routes::alternatives(Position destination) {
    NEXAR_ASSERT(destination < graph_->size() && destination != me_);
    auto known = index_.find(destination);
    if (known == index_.end()) {
        Entry& entry = free_entry();
        entry = compute(destination);
        const auto place = static_cast<std::size_t>(&entry - entries_.data());
        known = index_.emplace(destination, place).first;
    }
    const Entry& entry = entries_[known->second];
    return std::span(entry.alternatives).first(entry.count);
}

std::optional<std::uint32_t> Routes::distance(Position destination) {
    if (destination == me_) return 0;
    const auto known = alternatives(destination);
    return known.empty() ? std::nullopt : std::optional(known.front().hops);
}

std::optional<Position> Routes::next_hop(Position destination, std::uint32_t choice,
                                         std::optional<Position> from) {
    std::array<Position, kMostAlternatives> allowed{};
    std::uint32_t count = 0;
    for (const Alternative& alternative : alternatives(destination)) {
        if (alternative.next != from) allowed[count++] = alternative.next;
    }
    if (count == 0) return std::nullopt;
    return allowed[choice % count];
}

Routes::Entry Routes::compute(Position destination) const {
    const Reach reach = search(*graph_, destination, broken_, me_);
    // Ranks, not positions: the order of ties should survive a view change.
    const std::uint64_t pair = mixed((std::uint64_t{graph_->rank(me_).value()} << 32U) |
                                     graph_->rank(destination).value());
    Best best;
    const auto offer = [&](Position next) {
        const std::uint32_t hops = reach.hops[next];
        if (hops == kUnreachable || broken_.contains({me_, next})) return;
        best.offer({{.next = next, .hops = hops + 1}, mixed(pair ^ graph_->rank(next).value())});
    };
    std::ranges::for_each(graph_->row(me_), offer);
    // Includes this member, which the search did not reach.
    std::ranges::for_each(graph_->group(graph_->group_of(me_)), offer);

    Entry entry{.destination = destination};
    for (const Candidate& candidate : best.kept()) {
        entry.alternatives[entry.count++] = candidate.alternative;
    }
    return entry;
}

/// A new entry, or if there are enough of them, an arbitrary one. Not the least recently used one:
/// a program that sends to all members in turn would always have lost the next destination.
Routes::Entry& Routes::free_entry() {
    if (entries_.size() < most_cached_) return entries_.emplace_back();
    Entry& entry = entries_[mixed(++evictions_) % entries_.size()];
    index_.erase(entry.destination);
    return entry;
}

}  // namespace nexar::routing
