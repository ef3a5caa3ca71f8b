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
    const std::uint64_t fingerprint = leavers.size();
    begin("agrees on a checkpoint", [this, leavers = std::move(leavers)]() mutable {
        await_view(outcome(), std::move(leavers), true);
    });
    agree(wire::AgreementKind::checkpoint, 0, fingerprint);
    starting_ = false;
}

runtime::Outcome Workload::outcome() noexcept {
    const engine::AgreeOperation& agreed = *last().agreement;
    return {.lost = agreed.lost,
            .epoch = agreed.epoch,
            .creation = agreed.creation,
            .words = agreed.agreed_words};
}

void Workload::await_view(const runtime::Outcome& agreed, std::vector<Rank> excluded, bool grows) {
    step_ = "waits for a view";
    Next next = [this, agreed, excluded = std::move(excluded), grows] {
        follow(agreed, excluded, grows);
    };
    if (node_->members().view().epoch >= agreed.epoch) return next();
    awaited_.emplace(agreed.epoch, std::move(next));
}

/// Makes the communicator that the ranks agreed on the world.
void Workload::follow(const runtime::Outcome& agreed, const std::vector<Rank>& excluded,
                      bool grows) {
    engine::Context& parent = *world_;
    std::vector<NodeId> joiners;
    const View* const view = node_->members().view_of(agreed.epoch);
    if (grows && view != nullptr) {
        for (const Rank rank :
             runtime::members_beyond(*view, parent, node_->self().node)) {
            const auto member = std::ranges::find(view->members, rank, &Member::rank);
            joiners.push_back(member->node);
        }
    }
    const runtime::Successor next =
        runtime::successor_of(parent, node_->self().node, agreed, excluded, joiners);
    parent.creations = std::max(parent.creations, agreed.creation + 1);
    if (!next.me) {
        say("leaves");
        rules_->leaves(node_->self().node);
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
    begin("shrinks", [this] { await_view(outcome(), {}, false); });
    agree(wire::AgreementKind::shrink, 0, 0);
    starting_ = false;
}

}  // namespace nexar::chaos
