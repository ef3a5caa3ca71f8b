#pragma once

#include <algorithm>
#include <cmath>

#include "schedule/cost.hpp"
#include "schedule/shape.hpp"

namespace nexar::schedule {

/// The terms of Shape, the rates, and sums that several formulas share.
struct Terms : Shape {
    Terms(const Extent& extent, const Rates& between, const Rates& within)
        : Shape(extent),
          near_rounds(std::min<double>(extent.levels.near_rounds, down)),
          near_pairs(extent.levels.near_pairs),
          rates(between.shared_by(users(extent.levels.largest))),
          in_ring(between.shared_by(users(extent.levels.crossings))),
          in_tree(between.shared_by(users(extent.levels.largest / std::exp2(near_rounds)))),
          alone(between.shared_by(1)),
          near(extent.levels.hosts == 0 ? between : within) {}

    double near_rounds;  // rounds of halving, doubling or a tree that stay within hosts
    bool near_pairs;     // the ranks beyond p find their partners on their own host

    // Between hosts: when all ranks of a host use the network at the same time, when every rank
    // sends to the next one, in a tree (after near_rounds few ranks still take part), and when one
    // rank of the host uses it.
    Rates rates;
    Rates in_ring;
    Rates in_tree;
    Rates alone;
    Rates near;  // within a host

    static double users(double ranks) { return std::max(ranks, 1.0); }
    const Rates& pair_rates() const { return near_pairs ? near : rates; }

    double hop(double bytes) const { return rates.hop(bytes); }
    double swap(double bytes) const { return rates.swap(bytes); }
    double occupies(double bytes) const { return rates.occupies(bytes); }
    double fold(double bytes) const { return bytes * rates.reduce_byte; }
    double pair_fold_hop(double bytes) const { return pair_rates().hop(bytes) + fold(bytes); }
    double fold_swap(double bytes) const { return swap(bytes) + fold(bytes); }
    double copy(double bytes) const { return bytes * rates.copy_byte; }

    /// A vector passes through `hops` ranks one after the other. Each of them forwards it `times`
    /// times, and folds it if `folds`.
    double pipeline(double hops, double times, double bytes, bool folds) const {
        return pipeline(hops, times, bytes, folds, rates);
    }
    double pipeline(double hops, double times, double bytes, bool folds, const Rates& with) const {
        const double one = piece(bytes);
        // A rank that forwards to a single rank receives the next piece at the same time.
        const bool both = hops > 1 && times == 1 && pieces(bytes) > 1;
        const double busy = both ? with.occupies_both(one) : with.occupies(one);
        const double fill = with.arrival(one) + busy + (folds ? fold(one) : 0);
        const double stage = std::max(busy, folds ? fold(one) : 0);
        return hops * fill + (pieces(bytes) - 1) * times * stage;
    }

    /// p groups exchange halves, then quarters and so on: each round moves half of the previous
    /// one. The partners of the first round are the nearest; if not `nearest_first`, the last.
    double halves(bool nearest_first = true) const {
        double all = 0;
        double part = S;
        for (double round = 0; round < down; ++round) {
            const bool stays = (nearest_first ? round : down - 1 - round) < near_rounds;
            all += (stays ? near : rates).swap(part /= 2);
        }
        return all;
    }
    /// Rounds of halving or doubling in which partners exchange the whole vector.
    double swaps(double bytes) const {
        return near_rounds * near.swap(bytes) + (down - near_rounds) * swap(bytes);
    }
    double halving(bool folds) const { return halves() + (folds ? fold(S * (p - 1) / p) : 0); }

    /// Rounds of all_to_all in pairs, including the one in which a rank would be its own partner.
    double pairings() const { return n == 2 ? 1 : n; }

    /// Folds along the tree to one rank. The vectors of the first pairs arrive during the first
    /// round, one after the other, unless every round has to wait for them.
    double fold_to_one() const {
        const double one = piece(S);
        const double far = down - near_rounds;
        return pipeline(far + (near_pairs ? 0 : late), far + (near_pairs ? 0 : odd), S, true,
                        in_tree) +
               pipeline(near_rounds + (near_pairs ? late : 0), near_rounds + (near_pairs ? odd : 0),
                        S, true, near) +
               (odd - late) * (pair_rates().occupies(one) + fold(one));
    }

    /// The ranks that folded blocks send them to their owners. With one or two groups the blocks
    /// are already where they belong.
    double hand_out() const { return p > 2 || odd == 1 ? hop(c) : 0; }

    /// Every rank forwards n - 1 chunks, each as soon as it has it.
    double around(bool folds) const {
        const double whole = in_ring.occupies_both(c) + (pieces(c) - 1) * in_ring.per_message;
        const double one = piece(c);
        const double next = in_ring.swap(one) + (folds ? fold(one) : 0);
        if (segment == 0 || pieces(c) == 1) return (n - 1) * next;
        return (n - 1) * std::max(whole, next) + in_ring.latency + (folds ? fold(one) : 0);
    }
};

}  // namespace nexar::schedule
