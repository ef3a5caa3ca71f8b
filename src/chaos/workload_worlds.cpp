// How the program gets from one world to the next.

#include <fmt/format.h>

#include <algorithm>

#include "chaos/workload.hpp"

namespace nexar::chaos {

namespace {

/// How long a process that cannot reach a majority waits before it tries again.
constexpr Duration kParked = std::chrono::milliseconds(20);

}  // namespace

void Workload::gather_leavers() {
    begin("asks who leaves", [this] {
        std::vector<Rank> leavers;
        for (std::uint32_t rank = 0; rank < nodes_.size(); ++rank) {
            if (last().out[rank] != 0) leavers.emplace_back(rank);
        }
        agree_on_checkpoint(std::move(leavers));
    });
    start(gather_call(*world_, leaving_ ? 1 : 0), "all_gather of a checkpoint");
    starting_ = false;
}

void Workload::agree_on_checkpoint(std::vector<Rank> leavers) {
    begin("agrees on a checkpoint", [this] { await_view(); });
    agree(wire::AgreementKind::checkpoint, 0,
          {.excluded = std::move(leavers), .grows = true, .sends_state = true});
    starting_ = false;
}

/// After an agreement on another world.
void Workload::await_view() {
    step_ = "waits for a view";
    const runtime::Outcome agreed = runtime::outcome_of(*last().agreement);
    if (node_->members().view().epoch >= agreed.epoch) return follow(agreed);
    awaited_.emplace(agreed.epoch, [this, agreed] { follow(agreed); });
}

/// Makes the communicator that the ranks agreed on the world.
void Workload::follow(const runtime::Outcome& agreed) {
    engine::Context& parent = *world_;
    const NodeId& self = node_->self().node;
    std::vector<NodeId> joiners;
    const View* const view = node_->members().view_of(agreed.epoch);
    if (agreed.plan.grows && view != nullptr) {
        for (const Rank rank : runtime::members_beyond(*view, parent, self)) {
            joiners.push_back(std::ranges::find(view->members, rank, &Member::rank)->node);
        }
    }
    const runtime::Successor next = runtime::successor_of(parent, self, agreed, joiners);
    parent.creations = std::max(parent.creations, agreed.creation + 1);
    if (!next.me) {
        say("leaves");
        rules_->leaves(self);
        return quit();
    }
    round_ = std::max(round_, agreed.words[0]);
    engine::Context& made = node_->make_world(parent, next);
    node_->engine().end_context(parent);
    entered(made, next.nodes);
}

void Workload::recover(const Error& error) {
    if (error.code() == Errc::evicted || node_->members().evicted()) return stop();
    step_ = "recovers";
    recovering_ = true;
    ++attempts_;
    // After a loss the same call may fail again on all ranks, see detail::agree_to_shrink().
    const bool at_once = error.code() != Errc::minority_partition && attempts_ < 4;
    later(at_once ? Duration::zero() : kParked, [this] { shrink(); });
}

void Workload::shrink() {
    node_->engine().revoke(*world_);
    begin("shrinks", [this] { await_view(); });
    agree(wire::AgreementKind::shrink, 0);
    starting_ = false;
}

}  // namespace nexar::chaos
