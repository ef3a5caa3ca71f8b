// One formula per algorithm, in the terms of Shape. Times are in seconds.

#include "schedule/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/assert.hpp"
#include "schedule/cost_terms.hpp"
#include "schedule/level_cost.hpp"
#include "schedule/traffic.hpp"

namespace nexar::schedule {

namespace {

using Formula = double (*)(const Terms& t);

struct Entry {
    Collective operation;
    std::string_view name;
    Formula seconds;
};

/// The root handles the messages of all others one after the other. Those of its own host cost
/// less.
double in_flat(const Terms& t, double bytes) {
    return t.alone.arrival(bytes) + (t.n - t.smallest) * t.alone.occupies(bytes) +
           (t.smallest - 1) * t.near.occupies(bytes);
}
double to_root_in_flat(const Terms& t) {
    return in_flat(t, t.c);
}

// Slices of a subtree that wrap around the end of the world travel as two messages.
double by_binomial(const Terms& t) {
    double all = 0;
    for (double have = 1; have < t.n; have *= 2) {
        all += t.hop(t.c * std::min(have, t.n - have)) + t.rates.per_message;
    }
    return all;
}

double linear_scan(const Terms& t) {
    return t.pipeline(t.n - 1, 1, t.S, true, t.down_ranks, t.by_rank);
}

double through_tree(const Terms& t) {
    return t.packed_along_tree();
}

constexpr std::array kFormulas{
    Entry{Collective::all_reduce, "recursive_doubling",
          [](const Terms& t) {
              return t.swaps(t.S) + t.down * t.fold(t.S) + t.odd * t.pair_fold_hop(t.S) +
                     t.late * t.pair_rates().hop(t.S);
          }},
    Entry{Collective::all_reduce, "ring",
          [](const Terms& t) { return (t.n - 1) * (2 * t.step(t.c) + t.fold(t.c)); }},
    Entry{Collective::all_reduce, "segmented_ring",
          [](const Terms& t) { return t.around(true) + t.around(false); }},
    Entry{Collective::all_reduce, "halving_doubling",
          [](const Terms& t) {
              return t.odd * (t.pair_fold_hop(t.S) + t.pair_rates().hop(t.S)) + t.halving(true) +
                     t.halving(false);
          }},
    Entry{Collective::all_reduce, "reduce_scatter_all_gather",
          [](const Terms& t) {
              return t.odd * (t.pair_fold_hop(t.S) + t.occupies(t.c)) + t.halving(true) +
                     t.hand_out() + (t.n - 1) * t.step(t.c);
          }},
    Entry{Collective::all_reduce, "tree",
          [](const Terms& t) {
              if (t.pieces(t.S) == 1) {
                  const double stay = t.odd == 0 ? t.near_rounds : 0;
                  return t.fold_to_one() + stay * t.near.hop(t.S) +
                         (t.up - stay) * t.in_tree.hop(t.S);
              }
              // Fold and broadcast use the same ranks but opposite directions.
              const double one = t.piece(t.S);
              const double busiest = t.up + (t.up > 2 ? 1 : 0);
              return (t.down + t.odd) * t.fold_swap(one) + t.up * t.hop(one) +
                     (t.pieces(t.S) - 1) * busiest * t.rates.occupies_both(one);
          }},
    Entry{Collective::reduce, "binomial", [](const Terms& t) { return t.fold_to_one(); }},
    Entry{Collective::reduce, "reduce_scatter_gather",
          [](const Terms& t) {
              return t.odd * t.pair_fold_hop(t.S) + t.halving(true) + t.at_root.arrival(t.S / t.p) +
                     (t.p - 1) * t.at_root.occupies(t.S / t.p);
          }},
    Entry{Collective::broadcast, "flat", [](const Terms& t) { return in_flat(t, t.S); }},
    Entry{Collective::broadcast, "binomial",
          [](const Terms& t) { return t.pipeline(t.up, t.up, t.S, false); }},
    Entry{Collective::broadcast, "scatter_all_gather",
          [](const Terms& t) {
              // The first chunk goes around the ring while others are still on their way down the
              // tree.
              double down = 0;
              for (double round = 1; round < t.up; ++round) {
                  down += t.few.arrival(t.c * std::exp2(t.up - round)) + t.few.per_message;
              }
              return down + t.to_next.hop(t.c) + t.c * (t.n - 2) * t.few.per_byte +
                     (t.n - 2) * t.to_next.swap(t.c) + t.to_next.occupies(t.c);
          }},
    Entry{
        Collective::broadcast, "chain",
        [](const Terms& t) { return t.pipeline(t.n - 1, 1, t.S, false, t.down_ring, t.in_ring); }},
    Entry{Collective::all_gather, "ring", [](const Terms& t) { return t.around(false); }},
    Entry{Collective::all_gather, "recursive_doubling",
          [](const Terms& t) {
              return t.odd * (t.hop(t.c) + t.hop(t.S) + t.rates.per_message) + t.halves(false);
          }},
    Entry{Collective::all_gather, "bruck",
          [](const Terms& t) {
              // A rank sends as many chunks as it has, or as its receiver still lacks.
              double all = 0;
              std::size_t round = 0;
              for (double have = 1; have < t.n; have *= 2) {
                  const Rates to = t.shifted(round++);
                  all += to.swap(t.c * std::min(have, t.n - have)) + to.per_message;
              }
              return all;
          }},
    Entry{Collective::gather, "flat", to_root_in_flat},
    Entry{Collective::gather, "binomial", by_binomial},
    Entry{Collective::scatter, "flat", to_root_in_flat},
    Entry{Collective::scatter, "binomial", by_binomial},
    Entry{Collective::reduce_scatter, "ring", [](const Terms& t) { return t.around(true); }},
    Entry{Collective::reduce_scatter, "halving",
          [](const Terms& t) {
              return t.odd * (t.pair_fold_hop(t.S) + t.occupies(t.c)) + t.halving(true) +
                     t.hand_out();
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
    Entry{Collective::all_reduce, "spanning_tree",
          [](const Terms& t) { return t.both_along_tree(); }},
    Entry{Collective::reduce, "spanning_tree", [](const Terms& t) { return t.along_tree(true); }},
    Entry{Collective::broadcast, "spanning_tree",
          [](const Terms& t) { return t.along_tree(false); }},
    Entry{Collective::all_gather, "spanning_tree",
          [](const Terms& t) {
              // Two messages for each child: the chunks before its own, and those after it.
              return t.packed_along_tree() + t.along_tree(false) +
                     (t.stretches->shape.depth + t.stretches->shape.turns) * t.edge.per_message;
          }},
    Entry{Collective::gather, "spanning_tree", through_tree},
    Entry{Collective::scatter, "spanning_tree", through_tree},
    Entry{Collective::barrier, "spanning_tree",
          [](const Terms& t) { return t.along_tree(false) + t.along_tree(false); }},
};

// The share of the critical path that remains although other ranks have work.
constexpr double kIdle = 1.0 / 8;

double critical_path(const Algorithm& algorithm, const Extent& extent, const Rates& rates,
                     const Rates& host_rates) {
    if (algorithm.traits.two_level) return level_seconds(algorithm, extent, rates, host_rates);
    for (const Entry& entry : kFormulas) {
        if (entry.operation == algorithm.operation && entry.name == algorithm.name)
            return entry.seconds(Terms(extent, rates, host_rates, algorithm.peers));
    }
    NEXAR_ASSERT(false, "every algorithm has a formula");
    return HUGE_VAL;
}

/// For ranks that share processors. The processors are nearly always busy, so the total work counts
/// more than the critical path. A message costs more the more ranks take turns, because a turn then
/// handles fewer messages at once. And in every round a rank waits for the turns of the others,
/// which have messages to handle, too.
double shared_seconds(const Algorithm& algorithm, const Extent& extent, const Rates& rates,
                      const Rates& host_rates) {
    constexpr Rates kRounds{.latency = 1,
                            .per_message = 0,
                            .per_byte = 0,
                            .both_byte = 0,
                            .reduce_byte = 0,
                            .copy_byte = 0};
    const double shared = rates.ranks_per_core;
    const double rounds = critical_path(algorithm, extent, kRounds, kRounds);
    const Traffic all = traffic_of(algorithm, extent);
    const double turn = rates.per_message * shared * (shared - 1);
    // Relays handle a message as well.
    const double hops =
        extent.stretches == nullptr ? 1 : extent.stretches->of(algorithm.peers).mean;
    const auto handled = [&](double messages, double bytes, const Rates& with) {
        return 2 * messages * with.per_message * shared + 2 * bytes * with.per_byte;
    };
    const double work = handled(all.messages * hops, all.bytes * hops, rates) +
                        handled(all.near_messages, all.near_bytes, host_rates) +
                        all.folded * rates.reduce_byte;
    const double cores = std::max(extent.world / shared, 1.0);
    return rounds * turn + work / cores +
           kIdle * critical_path(algorithm, extent, rates, host_rates);
}

}  // namespace

double predicted_seconds(const Algorithm& algorithm, const Extent& extent, const Rates& rates,
                         const Rates& host_rates) {
    if (extent.world == 1) return extent.bytes * rates.copy_byte;
    if (algorithm.traits.needs_tree && extent.stretches == nullptr) return HUGE_VAL;
    return rates.ranks_per_core > 1 ? shared_seconds(algorithm, extent, rates, host_rates)
                                    : critical_path(algorithm, extent, rates, host_rates);
}

}  // namespace nexar::schedule
