#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sim/membership_world.hpp"

namespace nexar::testing {

/// Checks the promises P2, P4 and P5 (one list per epoch, nobody evicted who is reachable, never
/// two sides) on everything that happens in a world, and that ranks and tokens are granted once.
/// In a sparse topology, two members reach each other if there is a path of members that do not
/// fail. Shares no code with the layer that it checks.
class MembershipRules {
public:
    explicit MembershipRules(MembershipWorld& world);

    /// What went wrong first; empty: nothing.
    const std::string& failure() const { return failure_; }
    void fail(std::string what);

    /// Call before and after every change to paths, pauses, slowness and processes.
    void health_changes();
    /// A process was started with this view.
    void started(std::size_t machine, const View& view) { known_[machine] = view.epoch; }
    /// A machine asked to leave; it may be missing from now on.
    void leaves(std::size_t machine);
    /// These machines are cut from all others from now on.
    void partition(std::vector<std::size_t> side);
    void partition_ends() { side_.clear(); }

    const View* last() const;
    const View* committed(Epoch epoch) const;
    /// The number of voters of this view that run, with their incarnation.
    std::size_t running_voters(const View& view) const;
    /// The largest number of them that reach each other through members if all links work; in a
    /// sparse topology. Without one machine, unless `without` is the number of machines.
    std::size_t connected_voters(const View& view, std::size_t without) const;
    std::size_t most_joined() const { return granted_.size(); }
    bool removed(const Identity& who) const {
        return removed_.contains({who.node, who.incarnation});
    }
    /// Views that were proposed for the epoch after the last committed one.
    std::vector<View> proposals() const;

private:
    struct Proposal {
        View view{};
        TimePoint first{};
    };
    using Who = std::pair<NodeId, Incarnation>;

    void event(std::size_t machine, const membership::Event& event);
    void message(const membership::Outgoing& outgoing);
    void commit(std::size_t machine, const View& view);
    void first_commit(std::size_t machine, const View& view);
    void check_step(const View& old, const View& next);
    void check_joined(const View& old, const View& next);
    void check_removed(const View& old, const View& next);
    bool sick(std::size_t machine) const;
    std::uint64_t reached_by(std::size_t member) const;
    bool bad(std::size_t a, std::size_t b, std::uint64_t reached) const;
    bool bad(std::size_t a, std::size_t b) const { return bad(a, b, reached_by(a)); }
    bool reachable_by_majority(std::size_t machine, const View& view, TimePoint since) const;
    bool good_since(std::size_t a, std::size_t b, TimePoint since) const;

    MembershipWorld& world_;
    std::string failure_{};
    std::map<Epoch, View> committed_{};
    std::map<std::size_t, Epoch> known_{};  // by machine
    std::map<Rank, Who> granted_{};
    std::set<std::array<std::byte, 16>> tokens_{};
    std::set<Who> removed_{};
    std::set<Who> leaving_{};
    std::vector<Proposal> proposals_{};
    std::vector<TimePoint> last_bad_{};
    std::set<std::size_t> side_{};
    TimePoint cut_at_{};
    std::optional<bool> side_committed_{};
};

}  // namespace nexar::testing
