#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "schedule/algorithm.hpp"
#include "schedule/rank_order.hpp"
#include "schedule/spanning_tree.hpp"
#include "schedule/stretch.hpp"

namespace nexar::schedule {

/// How far apart the ranks of a communicator are in a sparse topology, where only some pairs of
/// members of the cluster have a link and messages of the others pass through members in between.
///
/// Made from the neighbours of every member, and equal on all ranks that are given the same ones.
/// Immutable, and cheap to copy. A communicator keeps its hops when links change later: schedules
/// made from them remain correct, because every pair can communicate, and only their cost changes.
class Hops {
public:
    /// Every pair has a link.
    Hops() = default;

    /// For the ranks of a whole cluster. neighbours[rank] is strictly ascending, and both ends of a
    /// link list each other; the links must connect all ranks. Rings follow `order`, in which
    /// consecutive ranks should be neighbours; empty: the order of ranks.
    explicit Hops(std::span<const std::vector<std::uint32_t>> neighbours,
                  std::vector<std::uint32_t> order = {});

    /// The hops among these ranks, numbered in this order. Messages between them may pass through
    /// other members.
    Hops among(std::span<const std::uint32_t> ranks) const;

    /// True if every pair has a link.
    bool none() const noexcept { return cluster_ == nullptr; }

    /// The remaining functions, except order(), stretches() and hash(), must not be called when
    /// every pair has a link.
    std::uint32_t world() const noexcept;
    /// The hops from a rank to each rank.
    std::vector<std::uint32_t> from(std::uint32_t rank) const;
    bool adjacent(std::uint32_t one, std::uint32_t other) const;

    /// For rings: consecutive ranks are near each other, as far as the order given allows.
    const RankOrder& order() const noexcept { return order_; }

    /// The shortest ways from the root to all ranks. Where several ranks can be the parent of one,
    /// it is the one with the fewest children. If a way passes through members outside of the
    /// communicator, the parent is the last rank before them.
    SpanningTree tree(std::uint32_t root) const;

    /// nullptr if every pair has a link. Valid as long as any copy of these hops. In worlds of more
    /// than 64 ranks, averages are those of 64 ranks.
    const Stretches* stretches() const noexcept { return stretches_.get(); }

    /// Equal if all hops and the order are.
    std::uint64_t hash() const noexcept { return hash_; }

    friend bool operator==(const Hops& one, const Hops& other);

private:
    struct Cluster;

    Hops(std::shared_ptr<const Cluster> cluster, std::vector<std::uint32_t> members);

    std::uint32_t member(std::uint32_t rank) const {
        return members_.empty() ? rank : members_[rank];
    }
    bool complete() const;
    RankOrder order_of_members() const;
    Stretch along(const RankOrder& order) const;
    void measure();

    std::shared_ptr<const Cluster> cluster_{};  // null: every pair has a link
    std::vector<std::uint32_t> members_{};      // by rank; empty: rank r is member r
    RankOrder order_{};
    std::shared_ptr<const Stretches> stretches_{};
    std::uint64_t hash_ = 0;
};

/// Fills in what an algorithm needs to know of the topology: Request::order, and Request::tree for
/// the root of the request, if the algorithm needs a tree.
void follow(Request& request, const Hops& hops, const Algorithm& algorithm);

}  // namespace nexar::schedule
