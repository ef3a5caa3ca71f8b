// One formula per two-level algorithm: the sum of its phases, within hosts (near) and between them
// (far). h = hosts, m = ranks of the largest host, k = owners of shares per host (shares.cpp).

#include "schedule/level_cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "base/assert.hpp"
#include "schedule/cost_terms.hpp"

namespace nexar::schedule {

namespace {

/// A phase among `members` ranks that all have the same rates.
struct Phase {
    double members;
    Rates rates;

    /// Terms of an algorithm of one level for these members alone.
    Terms terms(double bytes, double segment = 0) const {
        const auto world = static_cast<std::uint32_t>(members);
        return {{.world = world, .bytes = bytes, .chunk = bytes / members, .segment = segment},
                rates,
                rates};
    }
    /// Every member exchanges `times` messages of this many bytes with each other member.
    double direct(double bytes, double times = 1) const {
        if (members == 1) return 0;
        const double others = (members - 1) * times;
        if (others == 1) return rates.swap(bytes);
        return rates.arrival(bytes) + others * rates.occupies_both(bytes);
    }
    /// One member sends this many bytes to each of `others`, or gets them from each, in as many
    /// messages.
    double fan(double others, double bytes, double messages = 1) const {
        if (others < 1) return 0;
        return rates.arrival(bytes / messages) +
               others * (rates.occupies(bytes) + (messages - 1) * rates.per_message);
    }
};

struct LevelTerms {
    LevelTerms(const Extent& extent, const Rates& between, const Rates& within)
        : shape(extent),
          h(shape.hosts),
          m(shape.largest),
          k(shape.smallest),
          near{m, within},
          leaders{h, over(Peers::few, between.shared_by(1))},
          columns{h, over(Peers::all, between.shared_by(k))} {}

    Shape shape;
    double h;
    double m;
    double k;
    Phase near;
    Phase leaders;  // one rank of each host uses the network
    Phase columns;  // k ranks of each host use it

    Rates over(Peers peers, const Rates& link) const {
        return shape.stretches == nullptr ? link : link.over(shape.stretches->of(peers));
    }
    double share() const { return shape.S / k; }
    double block() const { return shape.S / k / h; }
    double fold(double bytes) const { return bytes * near.rates.reduce_byte; }
    /// Chunks that an owner handles for its host.
    double owned() const { return std::ceil(m / k); }
    /// The ranks that own no share, per host, exchange with an owner.
    double others_of_owner(double bytes) const { return near.fan(owned() - 1, bytes); }
    /// The same operation of one level on both levels, in segments: while one level handles a
    /// piece, the other one handles the next. A leader that sends on one level while it receives on
    /// the other needs both_byte for the part `both` of the bytes.
    template <class Level>
    double pipelined(double both, const Level& level) const {
        const double one = shape.piece(shape.S);
        Phase far = leaders;
        if (m > 1 && shape.pieces(shape.S) > 1) {
            far.rates.per_byte += both * (far.rates.both_byte - far.rates.per_byte);
        }
        const auto time = [&](const Phase& phase, double bytes) {
            return phase.members == 1 ? 0 : level(phase.terms(bytes, shape.segment));
        };
        return std::max(time(near, shape.S) + time(far, one), time(near, one) + time(far, shape.S));
    }
};

struct LevelEntry {
    Collective operation;
    std::string_view name;
    double (*seconds)(const LevelTerms& t);
};

double fold_within(const LevelTerms& t) {
    return t.m == 1 ? 0 : t.near.direct(t.share()) + t.fold(t.share());
}

double fold_shares(const LevelTerms& t) {
    return fold_within(t) + t.columns.direct(t.block()) + t.fold(t.block());
}

double through_leaders(const LevelTerms& t) {
    return t.near.fan(t.m - 1, t.shape.c) +
           t.leaders.fan(t.h - 1, t.m * t.shape.c, t.shape.crossings);
}

/// Each rank of the host of the root exchanges with about one rank of every other host, and those
/// chunks with the root; from the second one on often at the same time.
double through_partners(const LevelTerms& t) {
    const double c = t.shape.c;
    const Rates& far = t.columns.rates;
    if (t.k == 1) return t.columns.fan(t.shape.n - 1, c);
    return far.hop(c) + (t.h - 2) * (far.occupies(c) + far.occupies_both(c)) / 2 +
           t.near.fan(t.shape.n - t.h, c);
}

constexpr std::array kLevelFormulas{
    LevelEntry{Collective::all_reduce, "leaders",
               [](const LevelTerms& t) {
                   const double whole = t.shape.S;
                   const Terms far = t.leaders.terms(whole);
                   const Terms near = t.near.terms(whole);
                   const double between = far.swaps(whole) + far.down * far.fold(whole) +
                                          far.odd * far.pair_fold_hop(whole) +
                                          far.late * far.hop(whole);
                   if (t.m == 1) return between;
                   return between + near.fold_to_one() + near.up * near.hop(whole);
               }},
    LevelEntry{Collective::all_reduce, "shares",
               [](const LevelTerms& t) {
                   return fold_shares(t) + t.columns.direct(t.block()) + t.near.direct(t.share());
               }},
    LevelEntry{Collective::reduce, "leaders",
               [](const LevelTerms& t) {
                   return t.pipelined(1, [](const Terms& one) { return one.fold_to_one(); });
               }},
    LevelEntry{Collective::reduce, "shares",
               [](const LevelTerms& t) {
                   const double last = t.near.fan(t.k - 1, t.share());
                   if (t.h > 2) return fold_shares(t) + t.columns.fan(t.h - 1, t.block()) + last;
                   return fold_within(t) + t.columns.rates.hop(t.share()) + t.fold(t.share()) +
                          last;
               }},
    LevelEntry{Collective::broadcast, "leaders",
               [](const LevelTerms& t) {
                   return t.pipelined(0.5, [](const Terms& one) {
                       return one.pipeline(one.up, one.up, one.S, false);
                   });
               }},
    LevelEntry{Collective::broadcast, "shares",
               [](const LevelTerms& t) {
                   const Rates& far = t.columns.rates;
                   // The owner on the host of the root sends a block to each owner of the share,
                   // and then its own; the others exchange theirs at the same time.
                   const double blocks = t.h == 2 ? far.hop(t.share())
                                                  : 2 * far.arrival(t.block()) +
                                                        t.h * far.occupies(t.block()) +
                                                        (t.h - 2) * far.occupies_both(t.block());
                   return t.near.fan(t.k - 1, t.share()) + blocks + t.near.direct(t.share());
               }},
    LevelEntry{Collective::all_gather, "leaders",
               [](const LevelTerms& t) {
                   double between = 0;
                   for (double have = 1; have < t.h; have *= 2) {
                       between +=
                           t.leaders.rates.swap(t.shape.c * t.m * std::min(have, t.h - have)) +
                           t.shape.crossings * t.leaders.rates.per_message;
                   }
                   if (t.m == 1) return between;
                   const double spread = std::ceil(std::log2(t.m));
                   return t.near.fan(t.m - 1, t.shape.c) + between +
                          spread * (t.near.rates.hop(t.shape.S) + t.near.rates.per_message);
               }},
    LevelEntry{Collective::all_gather, "shares",
               [](const LevelTerms& t) {
                   return t.others_of_owner(t.shape.c) + t.columns.direct(t.owned() * t.shape.c) +
                          t.near.direct(t.owned() * t.shape.c, t.h);
               }},
    LevelEntry{Collective::gather, "leaders", through_leaders},
    LevelEntry{Collective::gather, "shares", through_partners},
    LevelEntry{Collective::scatter, "leaders", through_leaders},
    LevelEntry{Collective::scatter, "shares", through_partners},
    LevelEntry{Collective::reduce_scatter, "shares",
               [](const LevelTerms& t) {
                   const double chunks = t.owned() * t.shape.c;
                   const double within = t.m == 1 ? 0 : t.near.direct(chunks, t.h) + t.fold(chunks);
                   return within + t.columns.direct(chunks) + t.fold(chunks) +
                          t.others_of_owner(t.shape.c);
               }},
    LevelEntry{Collective::barrier, "leaders",
               [](const LevelTerms& t) {
                   return 2 * t.near.fan(t.m - 1, 0) +
                          std::ceil(std::log2(t.h)) * t.leaders.rates.hop(0);
               }},
};

}  // namespace

double level_seconds(const Algorithm& algorithm, const Extent& extent, const Rates& rates,
                     const Rates& host_rates) {
    const auto found = std::ranges::find_if(kLevelFormulas, [&](const LevelEntry& entry) {
        return entry.operation == algorithm.operation && entry.name == algorithm.name;
    });
    NEXAR_ASSERT(found != kLevelFormulas.end(), "every two-level algorithm has a formula");
    return found->seconds(LevelTerms(extent, rates, host_rates));
}

Traffic level_traffic(const Algorithm& algorithm, const Extent& extent) {
    const Shape t(extent);
    const double h = t.hosts;
    const double k = t.smallest;
    const double inner = t.n - h;  // ranks that are not leaders
    const bool leaders = algorithm.name == "leaders";
    // Every owner exchanges with those of the other hosts.
    const double pairs = k * h * (h - 1);
    // Every rank exchanges with all owners of its host.
    const double inner_pairs = k * (t.n - h);
    const double far_fold = (h - 1) * t.S;
    const double near_fold = inner * t.S;
    const double rounds = std::ceil(std::log2(h));
    const Phase far{h, Rates{}};
    switch (algorithm.operation) {
        case Collective::all_reduce: {
            if (!leaders) {
                return {.messages = 2 * pairs,
                        .bytes = 2 * far_fold,
                        .folded = far_fold + near_fold,
                        .near_messages = 2 * inner_pairs,
                        .near_bytes = 2 * near_fold};
            }
            const Terms one = far.terms(t.S);
            const double more = h - one.p;  // hosts beyond a power of two
            const double folds = one.p * one.down + more;
            return {.messages = folds + more,
                    .bytes = (folds + more) * t.S,
                    .folded = folds * t.S + near_fold,
                    .near_messages = 2 * inner,
                    .near_bytes = 2 * near_fold};
        }
        case Collective::reduce:
        case Collective::broadcast: {
            const bool folds = algorithm.operation == Collective::reduce;
            const double folded = folds ? far_fold + near_fold : 0;
            if (leaders) {
                return {.messages = (h - 1) * t.pieces(t.S),
                        .bytes = far_fold,
                        .folded = folded,
                        .near_messages = inner * t.pieces(t.S),
                        .near_bytes = near_fold};
            }
            // The folded blocks of a share go to the host of the root, and from there to the root.
            const double more = folds ? 1 : 0;
            const double blocks = h > 2 ? more : 0;
            return {.messages = h > 2 ? pairs + blocks * k * (h - 1) : k,
                    .bytes = far_fold + blocks * (h - 1) / h * t.S,
                    .folded = folded,
                    .near_messages = inner_pairs + more * (k - 1),
                    .near_bytes = near_fold + more * (k - 1) / k * t.S};
        }
        case Collective::all_gather:
            return {.messages = leaders ? h * rounds : pairs,
                    .bytes = far_fold,
                    .near_messages = leaders ? 3 * inner : inner_pairs * h,
                    .near_bytes = near_fold};
        case Collective::reduce_scatter:
            return {.messages = pairs,
                    .bytes = far_fold,
                    .folded = far_fold + near_fold,
                    .near_messages = inner_pairs * h,
                    .near_bytes = near_fold};
        case Collective::gather:
        case Collective::scatter:
            if (!leaders) {
                const double own = t.n / h;  // ranks on the host of the root
                const double passed = (t.n - own) * (own - 1) / own;
                return {.messages = t.n - own,
                        .bytes = (t.n - own) * t.c,
                        .near_messages = own - 1 + passed,
                        .near_bytes = (own - 1 + passed) * t.c};
            }
            return {.messages = h - 1,
                    .bytes = t.S * (h - 1) / h,
                    .near_messages = inner,
                    .near_bytes = inner * t.c};
        case Collective::barrier:
            return {.messages = h * rounds, .near_messages = 2 * inner};
        default:
            break;
    }
    NEXAR_ASSERT(false, "every two-level algorithm has a formula");
    return {};
}

}  // namespace nexar::schedule
