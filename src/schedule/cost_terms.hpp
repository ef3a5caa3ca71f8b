#pragma once

#include <algorithm>
#include <cmath>

#include "schedule/cost.hpp"
#include "schedule/shape.hpp"

namespace nexar::schedule {

/// The terms of Shape, the rates, and sums that several formulas share. `peers` are those of the
/// algorithm.
struct Terms : Shape {
    Terms(const Extent& extent, const Rates& between, const Rates& within, Peers peers = Peers::few)
        : Shape(extent),
          near_rounds(std::min<double>(extent.levels.near_rounds, down)),
          near_pairs(extent.levels.near_pairs),
          linked(between.shared_by(users(extent.levels.largest))),
          rates(reaching(peers, linked)),
          few(reaching(Peers::few, linked)),
          at_root(apart(linked)),
          to_next(reaching(Peers::next, linked)),
          in_ring(reaching(Peers::next, between.shared_by(users(extent.levels.crossings)))),
          down_ring(calmly(Peers::next, between.shared_by(users(extent.levels.crossings)))),
          by_rank(reaching(Peers::next_rank, between.shared_by(users(extent.levels.crossings)))),
          down_ranks(calmly(Peers::next_rank, between.shared_by(users(extent.levels.crossings)))),
          in_tree(calmly(Peers::partners,
                         between.shared_by(users(extent.levels.largest / std::exp2(near_rounds))))),
          alone(apart(between.shared_by(1))),
          edge(reaching(Peers::tree, linked)),
          near(extent.levels.hosts == 0 ? between : within) {}

    double near_rounds;  // rounds of halving, doubling or a tree that stay within hosts
    bool near_pairs;     // the ranks beyond p find their partners on their own host

    // Between hosts. First, when all ranks of a host use the network at the same time:
    Rates linked;   // over a single link
    Rates rates;    // to the peers of the algorithm
    Rates few;      // of ranks of which few send at a time
    Rates at_root;  // of one rank that exchanges messages with all others
    Rates to_next;  // to the next rank in a ring
    // When every rank sends to the next one, in a ring or by number, and while few of them do:
    Rates in_ring;
    Rates down_ring;
    Rates by_rank;
    Rates down_ranks;
    Rates in_tree;  // after near_rounds few ranks still take part
    Rates alone;    // one rank of the host uses the network
    Rates edge;     // in a given tree
    Rates near;     // within a host

    static double users(double ranks) { return std::max(ranks, 1.0); }
    Rates reaching(Peers peers, const Rates& link) const {
        return stretches == nullptr ? link : link.over(stretches->of(peers));
    }
    /// While few of the ranks send.
    Rates calmly(Peers peers, const Rates& link) const {
        return stretches == nullptr ? link : link.over(stretches->of(peers).calm());
    }
    /// Of a rank whose messages have many peers, and so pass through different relays.
    Rates apart(const Rates& link) const {
        return stretches == nullptr ? link : link.over({.path = stretches->few.path});
    }
    /// To the partners of one round, and to the rank at distance 2^round, while all ranks send.
    Rates to_partners(std::size_t round) const {
        return stretches == nullptr ? rates : linked.over(stretches->partners_in_round[round]);
    }
    Rates shifted(std::size_t round) const {
        return stretches == nullptr ? rates : linked.over(stretches->shifted_in_round[round]);
    }
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
        return pipeline(hops, times, bytes, folds, rates, rates);
    }
    /// `first` are the rates until the first piece has arrived; `with`, those of the others.
    double pipeline(double hops, double times, double bytes, bool folds, const Rates& first,
                    const Rates& with) const {
        const double one = piece(bytes);
        // A rank that forwards to a single rank receives the next piece at the same time.
        const bool both = hops > 1 && times == 1 && pieces(bytes) > 1;
        const auto busy = [&](const Rates& by) {
            return both ? by.occupies_both(one) : by.occupies(one);
        };
        const double fill = first.arrival(one) + busy(first) + (folds ? fold(one) : 0);
        const double stage = std::max(busy(with), folds ? fold(one) : 0);
        return hops * fill + (pieces(bytes) - 1) * times * stage;
    }

    /// p groups exchange halves, then quarters and so on: each round moves half of the previous
    /// one. The partners of the first round are the nearest; if not `nearest_first`, the last.
    double halves(bool nearest_first = true) const {
        double all = 0;
        double part = S;
        for (double i = 0; i < down; ++i) {
            const double round = nearest_first ? i : down - 1 - i;
            part /= 2;
            all += round < near_rounds ? near.swap(part)
                                       : to_partners(static_cast<std::size_t>(round)).swap(part);
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
                        in_tree, in_tree) +
               pipeline(near_rounds + (near_pairs ? late : 0), near_rounds + (near_pairs ? odd : 0),
                        S, true, near, near) +
               (odd - late) * (pair_rates().occupies(one) + fold(one));
    }

    /// The ranks that folded blocks send them to their owners. With one or two groups the blocks
    /// are already where they belong.
    double hand_out() const { return p > 2 || odd == 1 ? hop(c) : 0; }

    /// The vector passes down the given tree, or is folded upwards. A rank serves its children one
    /// after the other.
    double along_tree(bool folds) const {
        const TreeShape& tree = stretches->shape;
        const double one = piece(S);
        const double work = folds ? fold(one) : 0;
        const double most = std::max(tree.root_children, tree.children);
        const double busy = std::max(tree.root_children * edge.occupies(one),
                                     tree.children * edge.occupies_both(one));
        return tree.depth * (edge.hop(one) + work) + tree.turns * (edge.occupies(one) + work) +
               (pieces(S) - 1) * std::max(busy, most * work);
    }
    /// Up and down the tree. In segments, ranks do both at the same time.
    double both_along_tree() const {
        if (pieces(S) == 1) return along_tree(true) + along_tree(false);
        const TreeShape& tree = stretches->shape;
        const double one = piece(S);
        const double neighbours = std::max(tree.root_children, tree.children + 1);
        return tree.depth * (2 * edge.hop(one) + fold(one)) +
               tree.turns * (2 * edge.occupies(one) + fold(one)) +
               (pieces(S) - 1) * neighbours * std::max(edge.occupies_both(one), fold(one));
    }
    /// The chunks of whole subtrees between the root and its children, those of theirs, and so on.
    double packed_along_tree() const {
        const TreeShape& tree = stretches->shape;
        const double bytes = tree.passed * c;
        return tree.depth * (edge.latency + edge.per_message) + tree.turns * edge.per_message +
               (bytes + std::min(bytes, tree.depth * edge.fill_bytes)) * edge.per_byte + copy(S);
    }

    /// One step around the ring. A rank that relays has to keep up with what it sends for others.
    double step(double bytes) const {
        if (stretches == nullptr) return in_ring.swap(bytes);
        return std::max(down_ring.swap(bytes), in_ring.occupies_both(bytes));
    }
    /// Every rank forwards n - 1 chunks, each as soon as it has it.
    double around(bool folds) const {
        const double whole = in_ring.occupies_both(c) + (pieces(c) - 1) * in_ring.per_message;
        const double one = piece(c);
        const double next = step(one) + (folds ? fold(one) : 0);
        if (segment == 0 || pieces(c) == 1) return (n - 1) * next;
        return (n - 1) * std::max(whole, next) + in_ring.latency + (folds ? fold(one) : 0);
    }
};

}  // namespace nexar::schedule
