#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace nexar::schedule {

/// With whom the ranks of an algorithm exchange messages. In a sparse topology the hops of the
/// messages follow from it.
enum class Peers : std::uint8_t {
    few,        // any rank; at any time only a few ranks send
    all,        // every other rank
    partners,   // the groups of FoldTree at distances of powers of two, all at the same time
    shifted,    // the ranks at distances of powers of two, all at the same time
    next_rank,  // only the rank before and the rank after
    next,       // only the neighbours in Request::order
    tree,       // only the neighbours in Request::tree
};

/// The hops of the messages that ranks exchange with some peers.
struct Stretch {
    double mean = 1;
    /// Of the messages that an operation waits for. Where all ranks exchange messages in rounds,
    /// they wait for those with more hops than the mean.
    double path = 1;
    /// The bytes that the busiest rank sends for each byte of its own, because it also relays,
    /// while all ranks send. An estimate.
    double load = 1;

    /// The same hops while only a few ranks send.
    Stretch calm() const noexcept { return {.mean = mean, .path = path}; }

    friend bool operator==(const Stretch&, const Stretch&) = default;
};

/// A spanning tree, as far as the cost of algorithms depends on it.
struct TreeShape {
    double depth = 0;          // of the deepest rank
    double total_depth = 0;    // of all ranks together
    double turns = 0;          // most earlier siblings on the way from the root to a rank, together
    double root_children = 0;  // and the most that another rank has
    double children = 0;
    /// If every rank passes the chunks of its subtrees on, one child after the other: the chunks
    /// that ranks on the way to a rank send before it has its own, at most.
    double passed = 0;
};

/// The hops in a communicator of a sparse topology.
struct Stretches {
    Stretch few{};
    Stretch all{};
    Stretch partners{};  // averages of the rounds
    Stretch shifted{};
    Stretch next_rank{};
    Stretch next{};
    Stretch tree{};
    std::vector<Stretch> partners_in_round{};  // at distance 2^round
    std::vector<Stretch> shifted_in_round{};
    TreeShape shape{};  // of the tree of rank 0

    const Stretch& of(Peers peers) const noexcept {
        switch (peers) {
            case Peers::few:
                return few;
            case Peers::all:
                return all;
            case Peers::partners:
                return partners;
            case Peers::shifted:
                return shifted;
            case Peers::next_rank:
                return next_rank;
            case Peers::next:
                return next;
            case Peers::tree:
                break;
        }
        return tree;
    }
};

}  // namespace nexar::schedule
