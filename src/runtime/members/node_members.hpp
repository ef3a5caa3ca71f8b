#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/time.hpp"
#include "base/view.hpp"
#include "engine/engine.hpp"
#include "membership/membership.hpp"
#include "runtime/join/seed_line.hpp"

namespace nexar::runtime {

/// Drives the Membership of a node: carries its messages over the engine's links and over the line
/// to the seed, tells it what links know of their peers, and tells the engine what was decided.
/// Sans-I/O, like a mesh.
class NodeMembers {
public:
    explicit NodeMembers(engine::Engine& engine) noexcept : engine_(&engine) {}

    /// Begins with the first view of this node.
    void begin(TimePoint now, const Identity& self, const View& view,
               const membership::Options& options);
    bool begun() const noexcept { return membership_ != nullptr; }

    /// Handles what has arrived, and timers. `seed` may be nullptr.
    void turn(TimePoint now, SeedLine* seed);
    std::optional<TimePoint> next_deadline() const;

    /// Returns each new view once, after the engine knows it.
    std::optional<membership::Decided> poll_decided();

    /// The newest view.
    const View& view() const noexcept { return views_.back(); }
    /// One of the last views, without the spent tokens unless it is the newest; nullptr if this
    /// node never knew it or has forgotten it.
    const View* view_of(Epoch epoch) const noexcept;
    /// The rank in the cluster of a node that is or was a member, as far as this node remembers.
    std::optional<Rank> rank_of(const NodeId& node) const noexcept;
    /// A member of one of the last views; nullptr if there is none.
    const Member* find(const NodeId& node) const noexcept;
    const Member* find(Rank rank) const noexcept;

    /// Begins to leave: proposes a view without this node.
    void leave(TimePoint now);

    /// True if the others have agreed that this node has failed.
    bool evicted() const noexcept { return evicted_ && !leaving_; }
    bool leaving() const noexcept { return leaving_; }
    /// True after leave(), when the others have agreed to it.
    bool has_left() const noexcept { return leaving_ && evicted_; }
    /// True if this node is a member, and one of several, and can agree with them.
    bool can_leave() const noexcept;

private:
    static constexpr std::size_t kMostViews = 64;

    bool take_messages(TimePoint now, SeedLine* seed);
    void send_messages(SeedLine* seed);
    void take_events(SeedLine* seed);
    void release_departed();
    void tell_engine(const View& view, std::span<const NodeId> lost);
    void on(const membership::Decided& decided);
    void on(const membership::Evicted& evicted);
    void on(const membership::Minority& minority);
    void on(const membership::Unreachable& unreachable);
    void on(const membership::Silent& silent) { engine_->set_silent(silent.node, silent.silent); }
    std::string described(const NodeId& node) const;

    engine::Engine* engine_;
    Identity self_{};
    std::unique_ptr<membership::Membership> membership_;
    std::deque<View> views_;  // the last ones, oldest first
    std::deque<membership::Decided> decided_;
    Duration budget_{};
    TimePoint now_{};
    /// Members that left and may have a link, with the time to look at it, in its order.
    std::deque<std::pair<TimePoint, NodeId>> departed_{};
    bool minority_ = false;
    bool leaving_ = false;
    bool asked_ = false;  // of Membership, since the last turn
    bool evicted_ = false;
};

}  // namespace nexar::runtime
