#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "base/types.hpp"
#include "base/view.hpp"
#include "chaos/conditions.hpp"
#include "engine/agreement.hpp"
#include "link/sim/world.hpp"

namespace nexar::chaos {

/// The promises that a cluster keeps under every fault. They share no code with what they check.
///
///     P1  every operation ends, in time if nothing disturbs the cluster
///     P2  every epoch has one list of members, and epochs only grow
///     P3  agreements and new communicators are the same on all ranks
///     P4  nobody is evicted who is reachable by a majority
///     P5  two sides of a partition never both go on
///     P6  sums are exact; messages arrive once, in order and whole
///     calm  when the faults end, all that is left is one cluster that works
class Rules {
public:
    Rules(const sim::World& world, const Conditions& conditions, Duration budget);

    /// Breaks a rule; only the first time counts.
    void fail(std::string_view rule, std::string what);
    bool failed() const noexcept { return !rule_.empty(); }
    const std::string& rule() const noexcept { return rule_; }
    const std::string& failure() const noexcept { return failure_; }
    Duration elapsed() const;

    // P1
    /// How long an operation may take when nothing disturbs the cluster.
    Duration bound() const noexcept { return bound_; }
    /// An operation that began at this time has not ended yet, or ends now.
    void check_time(TimePoint began, const std::string& what);
    Duration slowest() const noexcept { return slowest_; }

    // P2, P4, P5
    /// A process on this machine adopts a view; `fresh`: it is its first one.
    void viewed(std::size_t machine, const NodeId& node, const View& view, bool fresh);
    void leaves(const NodeId& node) { leaving_.insert(node); }
    /// These machines are cut from all others from now on.
    void partition(std::set<std::size_t> side);
    void partition_ends() { side_.clear(); }
    const View* last() const;
    bool was_member(const NodeId& node) const;

    // P3
    struct Agreed {
        engine::WorldPlan plan{};
        std::uint64_t flags = 0;
        std::vector<Rank> lost{};
        Epoch epoch{};
        std::uint64_t creation = 0;
        std::array<std::uint64_t, 4> words{};

        friend bool operator==(const Agreed&, const Agreed&) = default;
    };
    void agreed(ContextId context, std::uint64_t number, const Agreed& value);
    void made(ContextId context, const std::vector<NodeId>& nodes);

    // P6
    /// Returns the number of a message of this pair in this communicator.
    std::uint64_t sends(ContextId context, const NodeId& from, const NodeId& to);
    /// Returns the number that the next message of this pair must have.
    std::uint64_t receives(ContextId context, const NodeId& from, const NodeId& to);

    struct Counts {
        std::uint64_t operations = 0;
        std::uint64_t errors = 0;
        std::uint64_t messages = 0;
        std::uint64_t sums = 0;
        std::uint64_t agreements = 0;
    };
    Counts counts{};
    std::size_t views() const noexcept { return committed_.size(); }
    std::size_t worlds() const noexcept { return worlds_.size(); }

private:
    void first_commit(std::size_t machine, const View& view);
    bool begins_anew(const View& old, const View& next) const;
    void check_ranks(const View& old, const View& next);
    void check_removed(const View& old, const View& next);
    bool reachable_by_majority(std::size_t machine, const View& view) const;

    const sim::World* world_;
    const Conditions* conditions_;
    Duration budget_;
    Duration bound_;
    TimePoint began_;
    std::string rule_{};
    std::string failure_{};
    Duration slowest_{};
    std::map<Epoch, View> committed_{};
    std::map<NodeId, View> known_{};  // the newest view of each process, and of the seed
    std::map<Rank, NodeId> granted_{};
    std::set<NodeId> leaving_{};
    std::set<std::size_t> side_{};
    TimePoint cut_at_{};
    std::optional<bool> side_committed_{};
    std::map<std::pair<ContextId, std::uint64_t>, Agreed> agreements_{};
    std::map<ContextId, std::vector<NodeId>> worlds_{};
    struct Ledger {
        std::uint64_t sent = 0;
        std::uint64_t received = 0;
    };
    std::map<std::tuple<ContextId, NodeId, NodeId>, Ledger> ledgers_{};
};

/// "epoch 3: 0 1 4, next 5"
std::string text_of(const View& view);

}  // namespace nexar::chaos
