#include "schedule/hops.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "base/assert.hpp"
#include "base/mix.hpp"
#include "schedule/fold_tree.hpp"
#include "schedule/request.hpp"

namespace nexar::schedule {

namespace {

constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kMostSamples = 64;

// While all ranks send over several hops, the busiest relay forwards more than the average one.
constexpr double kCrowding = 2;

/// A breadth-first search.
struct Found {
    std::vector<std::uint32_t> hops{};        // by member
    std::vector<std::uint32_t> discovered{};  // in this order
};

/// The hops of some messages.
class Tally {
public:
    void add(double hops, double times = 1) {
        sum_ += hops * times;
        count_ += times;
        longest_ = std::max(longest_, hops);
    }

    /// Of messages in rounds, in which all ranks send and wait for each other.
    Stretch in_rounds() const {
        Stretch stretch = in_turn();
        stretch.path = (stretch.mean + longest_) / 2;
        return stretch;
    }
    /// Of messages of which each waits for the one before.
    Stretch in_turn() const {
        if (count_ == 0) return {};
        const double mean = sum_ / count_;
        return {.mean = mean, .path = mean, .load = 1 + kCrowding * (mean - 1)};
    }

private:
    double sum_ = 0;
    double count_ = 0;
    double longest_ = 1;
};

/// Evenly spaced numbers below `count`; all of them if there are few.
std::vector<std::uint32_t> samples(std::uint32_t count) {
    std::vector<std::uint32_t> all(std::min(count, kMostSamples));
    for (std::uint64_t i = 0; i < all.size(); ++i) {
        all[i] = static_cast<std::uint32_t>(i * count / all.size());
    }
    return all;
}

Stretch average(std::span<const Stretch> rounds) {
    Stretch sum{.mean = 0, .path = 0, .load = 0};
    for (const Stretch& round : rounds) {
        sum.mean += round.mean;
        sum.path += round.path;
        sum.load += round.load;
    }
    const auto count = static_cast<double>(rounds.size());
    return {.mean = sum.mean / count, .path = sum.path / count, .load = sum.load / count};
}

}  // namespace

struct Hops::Cluster {
    std::vector<std::size_t> begins;    // in `others`, by member, and its end
    std::vector<std::uint32_t> others;  // the neighbours of all members
    std::vector<std::uint32_t> order;   // of all members
    std::uint64_t hash = 0;

    Cluster(std::span<const std::vector<std::uint32_t>> neighbours,
            std::vector<std::uint32_t> ring);

    std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(order.size()); }
    std::span<const std::uint32_t> of(std::uint32_t member) const {
        return std::span(others).subspan(begins[member], begins[member + 1] - begins[member]);
    }
    bool adjacent(std::uint32_t one, std::uint32_t other) const {
        return std::ranges::binary_search(of(one), other);
    }
    Found search(std::uint32_t start) const;
    /// The parent of each member in a tree of shortest ways.
    std::vector<std::uint32_t> parents(const Found& found) const;
};

Hops::Cluster::Cluster(std::span<const std::vector<std::uint32_t>> neighbours,
                       std::vector<std::uint32_t> ring)
    : begins(neighbours.size() + 1), order(std::move(ring)) {
    for (std::size_t member = 0; member < neighbours.size(); ++member) {
        others.insert(others.end(), neighbours[member].begin(), neighbours[member].end());
        begins[member + 1] = others.size();
        hash = mixed(hash ^ others.size());
    }
    for (const std::uint32_t other : others) {
        NEXAR_ASSERT(other < neighbours.size());
        hash = mixed(hash ^ other);
    }
    if (order.empty()) {
        order.resize(neighbours.size());
        std::iota(order.begin(), order.end(), 0U);
    }
    NEXAR_ASSERT(order.size() == neighbours.size());
    for (const std::uint32_t member : order) hash = mixed(hash ^ member);
    for (std::uint32_t member = 0; member < size(); ++member) {
        const auto row = of(member);
        NEXAR_ASSERT(std::ranges::is_sorted(row, std::ranges::less_equal()), "strictly ascending");
        for (const std::uint32_t other : row) {
            NEXAR_ASSERT(other != member && adjacent(other, member), "links have two ends");
        }
    }
}

Found Hops::Cluster::search(std::uint32_t start) const {
    Found found{.hops = std::vector<std::uint32_t>(size(), kNowhere), .discovered = {}};
    found.discovered.reserve(size());
    found.discovered.push_back(start);
    found.hops[start] = 0;
    for (std::size_t i = 0; i < found.discovered.size(); ++i) {
        const std::uint32_t member = found.discovered[i];
        for (const std::uint32_t other : of(member)) {
            if (found.hops[other] != kNowhere) continue;
            found.hops[other] = found.hops[member] + 1;
            found.discovered.push_back(other);
        }
    }
    NEXAR_ASSERT(found.discovered.size() == size(), "the links connect all members");
    return found;
}

std::vector<std::uint32_t> Hops::Cluster::parents(const Found& found) const {
    std::vector<std::uint32_t> all(size());
    std::vector<std::uint32_t> children(size());
    for (const std::uint32_t member : found.discovered) {
        std::uint32_t best = kNowhere;
        for (const std::uint32_t other : of(member)) {
            if (found.hops[other] + 1 != found.hops[member]) continue;
            if (best == kNowhere || children[other] < children[best]) best = other;
        }
        all[member] = best == kNowhere ? member : best;
        if (best != kNowhere) ++children[best];
    }
    return all;
}

Hops::Hops(std::span<const std::vector<std::uint32_t>> neighbours, std::vector<std::uint32_t> order)
    : Hops(std::make_shared<const Cluster>(neighbours, std::move(order)), {}) {}

Hops::Hops(std::shared_ptr<const Cluster> cluster, std::vector<std::uint32_t> members)
    : cluster_(std::move(cluster)), members_(std::move(members)) {
    if (complete()) {
        *this = Hops();
        return;
    }
    order_ = order_of_members();
    hash_ = mixed(cluster_->hash ^ world());
    for (const std::uint32_t one : members_) hash_ = mixed(hash_ ^ one);
    measure();
}

Hops Hops::among(std::span<const std::uint32_t> ranks) const {
    if (none()) return {};
    const auto same = [&] {
        for (std::uint32_t i = 0; i < ranks.size(); ++i) {
            if (ranks[i] != i) return false;
        }
        return ranks.size() == world();
    };
    if (same()) return *this;
    std::vector<std::uint32_t> members;
    members.reserve(ranks.size());
    for (const std::uint32_t rank : ranks) members.push_back(member(rank));
    return {cluster_, std::move(members)};
}

std::uint32_t Hops::world() const noexcept {
    return members_.empty() ? cluster_->size() : static_cast<std::uint32_t>(members_.size());
}

std::vector<std::uint32_t> Hops::from(std::uint32_t rank) const {
    std::vector<std::uint32_t> hops = cluster_->search(member(rank)).hops;
    if (members_.empty()) return hops;
    std::vector<std::uint32_t> of_ranks(members_.size());
    std::ranges::transform(members_, of_ranks.begin(),
                           [&](std::uint32_t one) { return hops[one]; });
    return of_ranks;
}

bool Hops::adjacent(std::uint32_t one, std::uint32_t other) const {
    return cluster_->adjacent(member(one), member(other));
}

bool Hops::complete() const {
    for (std::uint32_t one = 0; one < world(); ++one) {
        if (cluster_->of(member(one)).size() + 1 < world()) return false;
        for (std::uint32_t other = 0; other < one; ++other) {
            if (!adjacent(one, other)) return false;
        }
    }
    return true;
}

RankOrder Hops::order_of_members() const {
    if (members_.empty()) return RankOrder(cluster_->order);
    std::vector<std::uint32_t> rank_of(cluster_->size(), kNowhere);
    for (std::uint32_t rank = 0; rank < world(); ++rank) rank_of[members_[rank]] = rank;
    std::vector<std::uint32_t> ranks;
    ranks.reserve(world());
    for (const std::uint32_t one : cluster_->order) {
        if (rank_of[one] != kNowhere) ranks.push_back(rank_of[one]);
    }
    return RankOrder(std::move(ranks));
}

SpanningTree Hops::tree(std::uint32_t root) const {
    const Found found = cluster_->search(member(root));
    std::vector<std::uint32_t> parents = cluster_->parents(found);
    if (members_.empty()) return SpanningTree(parents);
    std::vector<std::uint32_t> rank_of(cluster_->size(), kNowhere);
    for (std::uint32_t rank = 0; rank < world(); ++rank) rank_of[members_[rank]] = rank;
    // Of each member: the nearest rank on the way to the root, itself if it is one.
    std::vector<std::uint32_t> nearest(cluster_->size());
    std::vector<std::uint32_t> of_ranks(world());
    for (const std::uint32_t one : found.discovered) {
        const std::uint32_t rank = rank_of[one];
        const std::uint32_t above = rank == root ? root : nearest[parents[one]];
        nearest[one] = rank == kNowhere ? above : rank;
        if (rank != kNowhere) of_ranks[rank] = above;
    }
    return SpanningTree(of_ranks);
}

/// The hops from each rank to the next in this order. One way of several hops delays the whole
/// ring, so all of them are found, unless there are many.
Stretch Hops::along(const RankOrder& order) const {
    std::vector<std::uint32_t> apart;  // positions whose next one is not adjacent
    for (std::uint32_t position = 0; position < world(); ++position) {
        const std::uint32_t after = order.rank_at(around(position, 1, world()));
        if (!adjacent(order.rank_at(position), after)) apart.push_back(position);
    }
    Tally tally;
    tally.add(1, static_cast<double>(world() - apart.size()));
    const std::vector<std::uint32_t> chosen = samples(static_cast<std::uint32_t>(apart.size()));
    for (const std::uint32_t i : chosen) {
        const std::uint32_t position = apart[i];
        const std::uint32_t after = order.rank_at(around(position, 1, world()));
        const double times = static_cast<double>(apart.size()) / static_cast<double>(chosen.size());
        tally.add(from(order.rank_at(position))[after], times);
    }
    Stretch stretch = tally.in_turn();
    // A single relay sends its own message and another one in every step.
    if (!apart.empty()) stretch.load = std::max(stretch.load, 2.0);
    return stretch;
}

void Hops::measure() {
    const FoldTree groups(world());
    const auto rounds = static_cast<std::size_t>(groups.rounds());
    const std::size_t shifts = groups.pairs() > 0 ? rounds + 1 : rounds;
    Tally all;
    std::vector<Tally> partners(rounds);
    std::vector<Tally> shifted(shifts);
    for (const std::uint32_t rank : samples(world())) {
        const std::vector<std::uint32_t> hops = from(rank);
        for (std::uint32_t other = 0; other < world(); ++other) {
            if (other != rank) all.add(hops[other]);
        }
        for (std::size_t round = 0; round < shifts; ++round) {
            shifted[round].add(hops[around(rank, 1U << round, world())]);
        }
        if (!groups.is_leader(rank)) continue;
        for (std::size_t round = 0; round < rounds; ++round) {
            partners[round].add(hops[groups.leader(groups.group_of(rank) ^ (1U << round))]);
        }
    }
    Stretches made{.all = all.in_turn(), .next_rank = along({}), .next = along(order_)};
    for (const Tally& round : partners) made.partners_in_round.push_back(round.in_rounds());
    for (const Tally& round : shifted) made.shifted_in_round.push_back(round.in_rounds());
    made.partners = average(made.partners_in_round);
    made.shifted = average(made.shifted_in_round);
    made.few = made.shifted.calm();
    const SpanningTree spanning = tree(0);
    const std::vector<std::uint32_t> depths = from(0);
    Tally edges;
    for (std::uint32_t rank = 1; rank < world(); ++rank) {
        edges.add(depths[rank] - depths[spanning.parent(rank)]);
    }
    made.tree = edges.in_turn().calm();
    made.shape = spanning.shape();
    stretches_ = std::make_shared<const Stretches>(std::move(made));
}

bool operator==(const Hops& one, const Hops& other) {
    if (one.cluster_ == other.cluster_) return one.members_ == other.members_;
    if (one.none() || other.none()) return false;
    return one.members_ == other.members_ && one.cluster_->begins == other.cluster_->begins &&
           one.cluster_->others == other.cluster_->others &&
           one.cluster_->order == other.cluster_->order;
}

void follow(Request& request, const Hops& hops, const Algorithm& algorithm) {
    request.order = hops.order();
    if (!algorithm.traits.needs_tree) return;
    const std::uint32_t root = rooted(request.operation) ? request.root : 0;
    request.tree = std::make_shared<const SpanningTree>(hops.tree(root));
}

}  // namespace nexar::schedule
