// One formula per algorithm, in the terms of Shape.

#include "schedule/traffic.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/assert.hpp"
#include "schedule/level_cost.hpp"
#include "schedule/shape.hpp"

namespace nexar::schedule {

namespace {

struct TrafficTerms : Shape {
    explicit TrafficTerms(const Extent& extent) : Shape(extent), more(n - p) {}

    double more;  // ranks beyond p

    /// `times` messages of this many bytes, each in its pieces; folded() for messages that are
    /// folded.
    Traffic sent(double times, double bytes) const {
        return {.messages = times * pieces(bytes), .bytes = times * bytes};
    }
    Traffic folded(double times, double bytes) const {
        Traffic all = sent(times, bytes);
        all.folded = all.bytes;
        return all;
    }
    /// Halves, then quarters and so on: every group moves the vector once, except its own part.
    Traffic halving() const { return {.messages = p * down, .bytes = (p - 1) * S}; }
    Traffic fold_halving() const {
        return {.messages = p * down, .bytes = (p - 1) * S, .folded = (p - 1) * S};
    }
    /// The groups send blocks to their owners.
    Traffic hand_out() const { return p > 2 || more > 0 ? sent(n - 1, c) : Traffic{}; }
    /// A chunk makes as many hops as its position has bits set.
    Traffic by_tree() const {
        double hops = 0;
        for (double bit = 1; bit < n; bit *= 2) {
            hops += std::floor(n / (2 * bit)) * bit + std::max(std::fmod(n, 2 * bit) - bit, 0.0);
        }
        return {.messages = n - 1, .bytes = c * hops};
    }
    /// Rank r sends to r + 1, r + 2, r + 4 and so on, as far as the world reaches.
    double doublings() const { return n * up - (std::exp2(up) - 1); }
};

Traffic operator+(const Traffic& a, const Traffic& b) {
    return {.messages = a.messages + b.messages,
            .bytes = a.bytes + b.bytes,
            .folded = a.folded + b.folded};
}

struct TrafficEntry {
    Collective operation;
    std::string_view name;
    Traffic (*traffic)(const TrafficTerms& t);
};

Traffic whole_to_each(const TrafficTerms& t) {
    return t.sent(t.n - 1, t.S);
}
Traffic fold_to_one(const TrafficTerms& t) {
    return t.folded(t.n - 1, t.S);
}
Traffic chunk_to_each(const TrafficTerms& t) {
    return t.sent(t.n - 1, t.c);
}
Traffic by_tree(const TrafficTerms& t) {
    return t.by_tree();
}
Traffic pairs(const TrafficTerms& t) {
    return t.sent(t.n * (t.n - 1), t.c);
}
Traffic fold_pairs(const TrafficTerms& t) {
    return t.folded(t.n * (t.n - 1), t.c);
}
Traffic ring_of_both(const TrafficTerms& t) {
    return fold_pairs(t) + pairs(t);
}
Traffic fold_doublings(const TrafficTerms& t) {
    return t.folded(t.doublings(), t.S);
}

/// A chunk makes as many hops as its rank is deep in the given tree.
Traffic by_given_tree(const TrafficTerms& t) {
    return {.messages = t.n - 1, .bytes = t.c * t.stretches->shape.total_depth};
}

constexpr std::array kTrafficFormulas{
    TrafficEntry{Collective::all_reduce, "recursive_doubling",
                 [](const TrafficTerms& t) {
                     return t.folded(t.p * t.down + t.more, t.S) + t.sent(t.more, t.S);
                 }},
    TrafficEntry{Collective::all_reduce, "ring", ring_of_both},
    TrafficEntry{Collective::all_reduce, "segmented_ring", ring_of_both},
    TrafficEntry{Collective::all_reduce, "halving_doubling",
                 [](const TrafficTerms& t) {
                     return t.folded(t.more, t.S) + t.fold_halving() + t.halving() +
                            t.sent(t.more, t.S);
                 }},
    TrafficEntry{Collective::all_reduce, "reduce_scatter_all_gather",
                 [](const TrafficTerms& t) {
                     return t.folded(t.more, t.S) + t.fold_halving() + t.hand_out() + pairs(t);
                 }},
    TrafficEntry{Collective::all_reduce, "tree",
                 [](const TrafficTerms& t) { return fold_to_one(t) + whole_to_each(t); }},
    TrafficEntry{Collective::reduce, "binomial", fold_to_one},
    TrafficEntry{Collective::reduce, "reduce_scatter_gather",
                 [](const TrafficTerms& t) {
                     return t.folded(t.more, t.S) + t.fold_halving() + t.sent(t.p - 1, t.S / t.p);
                 }},
    TrafficEntry{Collective::broadcast, "flat", whole_to_each},
    TrafficEntry{Collective::broadcast, "binomial", whole_to_each},
    TrafficEntry{Collective::broadcast, "scatter_all_gather",
                 [](const TrafficTerms& t) {
                     // The ring skips chunks that a rank got from the tree, and the root has all of
                     // them.
                     return t.by_tree() + t.sent((t.n - 1) * (t.n - 1), t.c);
                 }},
    TrafficEntry{Collective::broadcast, "chain", whole_to_each},
    TrafficEntry{Collective::all_gather, "ring", pairs},
    TrafficEntry{Collective::all_gather, "recursive_doubling",
                 [](const TrafficTerms& t) {
                     return t.sent(t.more, t.c) + t.halving() + t.sent(t.more, t.S);
                 }},
    TrafficEntry{Collective::all_gather, "bruck",
                 [](const TrafficTerms& t) {
                     return Traffic{.messages = t.n * t.up, .bytes = t.n * (t.n - 1) * t.c};
                 }},
    TrafficEntry{Collective::gather, "flat", chunk_to_each},
    TrafficEntry{Collective::gather, "binomial", by_tree},
    TrafficEntry{Collective::scatter, "flat", chunk_to_each},
    TrafficEntry{Collective::scatter, "binomial", by_tree},
    TrafficEntry{Collective::reduce_scatter, "ring", fold_pairs},
    TrafficEntry{Collective::reduce_scatter, "halving",
                 [](const TrafficTerms& t) {
                     return t.folded(t.more, t.S) + t.fold_halving() + t.hand_out();
                 }},
    TrafficEntry{Collective::all_to_all, "pairwise", pairs},
    TrafficEntry{Collective::all_to_all, "windowed", pairs},
    TrafficEntry{Collective::all_to_all, "bruck",
                 [](const TrafficTerms& t) {
                     // A chunk makes as many hops as the distance to its receiver has bits set.
                     return Traffic{.messages = t.n * t.up, .bytes = t.n * t.by_tree().bytes};
                 }},
    TrafficEntry{Collective::scan, "recursive_doubling", fold_doublings},
    TrafficEntry{Collective::scan, "linear", fold_to_one},
    TrafficEntry{Collective::exclusive_scan, "recursive_doubling",
                 [](const TrafficTerms& t) {
                     // The first message that a rank receives is its result so far and is not
                     // folded.
                     return t.folded(t.doublings() - t.up, t.S) + t.sent(t.up, t.S);
                 }},
    TrafficEntry{Collective::exclusive_scan, "linear",
                 [](const TrafficTerms& t) { return t.folded(t.n - 2, t.S) + t.sent(1, t.S); }},
    TrafficEntry{Collective::barrier, "flat",
                 [](const TrafficTerms& t) { return t.sent(2 * (t.n - 1), 0); }},
    TrafficEntry{Collective::barrier, "dissemination",
                 [](const TrafficTerms& t) { return t.sent(t.n * t.up, 0); }},
    TrafficEntry{Collective::all_reduce, "spanning_tree",
                 [](const TrafficTerms& t) { return fold_to_one(t) + whole_to_each(t); }},
    TrafficEntry{Collective::reduce, "spanning_tree", fold_to_one},
    TrafficEntry{Collective::broadcast, "spanning_tree", whole_to_each},
    TrafficEntry{Collective::all_gather, "spanning_tree",
                 [](const TrafficTerms& t) {
                     return by_given_tree(t) + t.sent(2 * (t.n - 1), (t.S - t.c) / 2);
                 }},
    TrafficEntry{Collective::gather, "spanning_tree", by_given_tree},
    TrafficEntry{Collective::scatter, "spanning_tree", by_given_tree},
    TrafficEntry{Collective::barrier, "spanning_tree",
                 [](const TrafficTerms& t) { return t.sent(2 * (t.n - 1), 0); }},
};

}  // namespace

Traffic traffic_of(const Algorithm& algorithm, const Extent& extent) {
    if (extent.world == 1) return {};
    if (algorithm.traits.two_level) return level_traffic(algorithm, extent);
    const auto found = std::ranges::find_if(kTrafficFormulas, [&](const TrafficEntry& entry) {
        return entry.operation == algorithm.operation && entry.name == algorithm.name;
    });
    NEXAR_ASSERT(found != kTrafficFormulas.end(), "every algorithm has a formula");
    return found->traffic(TrafficTerms(extent));
}

}  // namespace nexar::schedule
