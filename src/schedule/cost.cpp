// One formula per algorithm, in the terms of Shape. Times are in seconds.

#include "schedule/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "schedule/shape.hpp"
#include "schedule/traffic.hpp"

namespace nexar::schedule {

namespace {

/// The terms of Shape, the rates, and sums that several formulas share.
struct Terms : Shape {
    Terms(const Extent& extent, const Rates& given) : Shape(extent), rates(given) {}

    Rates rates;

    double hop(double bytes) const { return rates.hop(bytes); }
    double swap(double bytes) const { return rates.swap(bytes); }
    double occupies(double bytes) const { return rates.occupies(bytes); }
    double fold(double bytes) const { return bytes * rates.reduce_byte; }
    double fold_hop(double bytes) const { return hop(bytes) + fold(bytes); }
    double fold_swap(double bytes) const { return swap(bytes) + fold(bytes); }
    double copy(double bytes) const { return bytes * rates.copy_byte; }

    /// A vector passes through `hops` ranks one after the other. Each of them forwards it `times`
    /// times, and folds it if `folds`.
    double pipeline(double hops, double times, double bytes, bool folds) const {
        const double one = piece(bytes);
        // A rank that forwards to a single rank receives the next piece at the same time.
        const bool both = hops > 1 && times == 1 && pieces(bytes) > 1;
        const double busy = both ? rates.occupies_both(one) : occupies(one);
        const double fill = rates.arrival(one) + busy + (folds ? fold(one) : 0);
        const double stage = std::max(busy, folds ? fold(one) : 0);
        return hops * fill + (pieces(bytes) - 1) * times * stage;
    }

    /// p groups exchange halves, then quarters and so on: each round moves half of the previous
    /// one.
    double halves() const {
        double all = 0;
        double part = S;
        for (double round = 0; round < down; ++round) all += swap(part /= 2);
        return all;
    }
    double halving(bool folds) const { return halves() + (folds ? fold(S * (p - 1) / p) : 0); }

    /// Rounds of all_to_all in pairs, including the one in which a rank would be its own partner.
    double pairings() const { return n == 2 ? 1 : n; }

    /// Folds along the tree to one rank. The vectors of the first pairs arrive during the first
    /// round, one after the other, unless every round has to wait for them.
    double fold_to_one() const {
        const double one = piece(S);
        return pipeline(down + late, down + odd, S, true) +
               (odd - late) * (occupies(one) + fold(one));
    }

    /// The ranks that folded blocks send them to their owners. With one or two groups the blocks
    /// are already where they belong.
    double hand_out() const { return p > 2 || odd == 1 ? hop(c) : 0; }

    /// Every rank forwards n - 1 chunks, each as soon as it has it.
    double around(bool folds) const {
        const double whole = rates.occupies_both(c) + (pieces(c) - 1) * rates.per_message;
        const double one = piece(c);
        const double next = swap(one) + (folds ? fold(one) : 0);
        if (segment == 0 || pieces(c) == 1) return (n - 1) * next;
        return (n - 1) * std::max(whole, next) + rates.latency + (folds ? fold(one) : 0);
    }
};

using Formula = double (*)(const Terms& t);

struct Entry {
    Collective operation;
    std::string_view name;
    Formula seconds;
};

double to_root_in_flat(const Terms& t) {
    return t.rates.arrival(t.c) + (t.n - 1) * t.occupies(t.c);
}

/// In every round a rank sends as many chunks as it has, or as its receiver still lacks.
double by_rounds(const Terms& t, double (Terms::*message)(double) const) {
    double all = 0;
    for (double have = 1; have < t.n; have *= 2) {
        all += (t.*message)(t.c * std::min(have, t.n - have)) + t.rates.per_message;
    }
    return all;
}

// Slices of a subtree that wrap around the end of the world travel as two messages.
double by_binomial(const Terms& t) {
    return by_rounds(t, &Terms::hop);
}

double linear_scan(const Terms& t) {
    return t.pipeline(t.n - 1, 1, t.S, true);
}

constexpr std::array kFormulas{
    Entry{Collective::all_reduce, "recursive_doubling",
          [](const Terms& t) {
              return t.down * t.fold_swap(t.S) + t.odd * t.fold_hop(t.S) + t.late * t.hop(t.S);
          }},
    Entry{Collective::all_reduce, "ring",
          [](const Terms& t) { return (t.n - 1) * (t.fold_swap(t.c) + t.swap(t.c)); }},
    Entry{Collective::all_reduce, "segmented_ring",
          [](const Terms& t) { return t.around(true) + t.around(false); }},
    Entry{Collective::all_reduce, "halving_doubling",
          [](const Terms& t) {
              return t.odd * (t.fold_hop(t.S) + t.hop(t.S)) + t.halving(true) + t.halving(false);
          }},
    Entry{Collective::all_reduce, "reduce_scatter_all_gather",
          [](const Terms& t) {
              return t.odd * (t.fold_hop(t.S) + t.occupies(t.c)) + t.halving(true) + t.hand_out() +
                     (t.n - 1) * t.swap(t.c);
          }},
    Entry{Collective::all_reduce, "tree",
          [](const Terms& t) {
              if (t.pieces(t.S) == 1) return t.fold_to_one() + t.up * t.hop(t.S);
              // Fold and broadcast use the same ranks but opposite directions.
              const double one = t.piece(t.S);
              const double busiest = t.up + (t.up > 2 ? 1 : 0);
              return (t.down + t.odd) * t.fold_swap(one) + t.up * t.hop(one) +
                     (t.pieces(t.S) - 1) * busiest * t.rates.occupies_both(one);
          }},
    Entry{Collective::reduce, "binomial", [](const Terms& t) { return t.fold_to_one(); }},
    Entry{Collective::reduce, "reduce_scatter_gather",
          [](const Terms& t) {
              return t.odd * t.fold_hop(t.S) + t.halving(true) + t.rates.arrival(t.S / t.p) +
                     (t.p - 1) * t.occupies(t.S / t.p);
          }},
    Entry{Collective::broadcast, "flat",
          [](const Terms& t) { return t.rates.arrival(t.S) + (t.n - 1) * t.occupies(t.S); }},
    Entry{Collective::broadcast, "binomial",
          [](const Terms& t) { return t.pipeline(t.up, t.up, t.S, false); }},
    Entry{Collective::broadcast, "scatter_all_gather",
          [](const Terms& t) {
              // The first chunk goes around the ring while others are still on their way down the
              // tree.
              double down = 0;
              for (double round = 1; round < t.up; ++round) {
                  down += t.rates.arrival(t.c * std::exp2(t.up - round)) + t.rates.per_message;
              }
              return down + t.hop(t.c) + t.c * (t.n - 2) * t.rates.per_byte +
                     (t.n - 2) * t.swap(t.c) + t.occupies(t.c);
          }},
    Entry{Collective::broadcast, "chain",
          [](const Terms& t) { return t.pipeline(t.n - 1, 1, t.S, false); }},
    Entry{Collective::all_gather, "ring", [](const Terms& t) { return t.around(false); }},
    Entry{Collective::all_gather, "recursive_doubling",
          [](const Terms& t) {
              return t.odd * (t.hop(t.c) + t.hop(t.S) + t.rates.per_message) + t.halves();
          }},
    Entry{Collective::all_gather, "bruck",
          [](const Terms& t) { return by_rounds(t, &Terms::swap); }},
    Entry{Collective::gather, "flat", to_root_in_flat},
    Entry{Collective::gather, "binomial", by_binomial},
    Entry{Collective::scatter, "flat", to_root_in_flat},
    Entry{Collective::scatter, "binomial", by_binomial},
    Entry{Collective::reduce_scatter, "ring", [](const Terms& t) { return t.around(true); }},
    Entry{Collective::reduce_scatter, "halving",
          [](const Terms& t) {
              return t.odd * (t.fold_hop(t.S) + t.occupies(t.c)) + t.halving(true) + t.hand_out();
          }},
    Entry{Collective::all_to_all, "pairwise",
          [](const Terms& t) { return t.pairings() * t.swap(t.c); }},
    Entry{Collective::all_to_all, "windowed",
          [](const Terms& t) {
              // Other pairs continue while one rank would be its own partner.
              const double rounds = t.n == 2 ? 1 : t.n - 0.5;
              const double waits = std::ceil(t.pairings() / t.window);
              return std::max(t.rates.arrival(t.c) + rounds * t.rates.occupies_both(t.c),
                              waits * (t.swap(t.c) + t.rates.per_message));
          }},
    Entry{Collective::all_to_all, "bruck",
          [](const Terms& t) { return t.up * (t.swap(t.S / 2) + t.copy(t.S / 2)) + t.copy(t.S); }},
    Entry{Collective::scan, "recursive_doubling",
          [](const Terms& t) {
              // The last rank only receives.
              return (t.up - 1) * t.swap(t.S) + t.hop(t.S) + t.up * t.fold(t.S);
          }},
    Entry{Collective::scan, "linear", linear_scan},
    Entry{Collective::exclusive_scan, "recursive_doubling",
          [](const Terms& t) { return (t.up - 1) * (t.swap(t.S) + 2 * t.fold(t.S)) + t.hop(t.S); }},
    Entry{Collective::exclusive_scan, "linear", linear_scan},
    Entry{Collective::barrier, "flat",
          [](const Terms& t) {
              // A rank does not wait for its own signal, so two ranks need no answers.
              const double one_way = t.rates.latency + (t.n - 1) * t.rates.per_message;
              return t.n == 2 ? one_way : 2 * one_way;
          }},
    Entry{Collective::barrier, "dissemination", [](const Terms& t) { return t.up * t.hop(0); }},
};

// The share of the critical path that remains although other ranks have work.
constexpr double kIdle = 1.0 / 8;

/// For ranks that share processors. The processors are nearly always busy, so the total work counts
/// more than the critical path. A message costs more the more ranks take turns, because a turn then
/// handles fewer messages at once. And in every round a rank waits for the turns of the others,
/// which have messages to handle, too.
double shared_seconds(const Entry& entry, const Algorithm& algorithm, const Extent& extent,
                      const Rates& rates) {
    constexpr Rates kRounds{.latency = 1,
                            .per_message = 0,
                            .per_byte = 0,
                            .both_byte = 0,
                            .reduce_byte = 0,
                            .copy_byte = 0};
    const double shared = rates.ranks_per_core;
    const double rounds = entry.seconds(Terms(extent, kRounds));
    const Traffic all = traffic_of(algorithm, extent);
    const double turn = rates.per_message * shared * (shared - 1);
    const double work = 2 * all.messages * rates.per_message * shared +
                        2 * all.bytes * rates.per_byte + all.folded * rates.reduce_byte;
    const double cores = std::max(extent.world / shared, 1.0);
    return rounds * turn + work / cores + kIdle * entry.seconds(Terms(extent, rates));
}

}  // namespace

double predicted_seconds(const Algorithm& algorithm, const Extent& extent, const Rates& rates) {
    if (extent.world == 1) return extent.bytes * rates.copy_byte;
    for (const Entry& entry : kFormulas) {
        if (entry.operation != algorithm.operation || entry.name != algorithm.name) continue;
        return rates.ranks_per_core > 1 ? shared_seconds(entry, algorithm, extent, rates)
                                        : entry.seconds(Terms(extent, rates));
    }
    NEXAR_ASSERT(algorithm.traits.needs_tree, "every algorithm has a formula");
    return HUGE_VAL;
}

}  // namespace nexar::schedule
