// A seed as a voter: it carries the messages of its Membership, keeps its vote on disk, and
// proposes the processes that join.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "runtime/seed/seed_server.hpp"
#include "wire/codec.hpp"
#include "wire/view.hpp"

namespace nexar::runtime {

namespace {

/// Newer views of nodes that this seed's own view does not have, kept at the same time. Two nodes
/// must bring the same one.
constexpr std::size_t kMostBrought = 8;

std::uint64_t seed_of_random(const NodeId& node) {
    std::uint64_t value = 0;
    std::memcpy(&value, node.bytes().data(), sizeof value);
    return value;
}

}  // namespace

void SeedServer::begin_membership(TimePoint now) {
    const Identity identity{
        .cluster = ca_->cluster(), .node = self().seed, .incarnation = self().incarnation};
    membership_ = std::make_unique<membership::Membership>(
        now, identity, vote_,
        membership::Options{.budget = config_.duration("failure_budget"),
                            .seed = true,
                            .random_seed = seed_of_random(identity.node)});
    proposed_changes_ = 0;
    proposed_.clear();
    propose(now);
}

void SeedServer::end_membership() {
    membership_.reset();
    vote_ = {};
    ++votes_;
}

Result<void> SeedServer::take_of_voter(Visitor& visitor, const wire::FrameHeader& header,
                                       port::ConstBytes body) {
    const auto hand_over = [&](const membership::Message& message) -> Result<void> {
        if (membership_ && visitor.member) {
            membership_->handle(now_, *visitor.member, false, message);
        }
        return {};
    };
    if (visitor.holder && header.type == wire::FrameType::suspicion) {
        NEXAR_TRY_VALUE(suspicion, wire::decode_body<wire::Suspicion>(header, body));
        return hand_over(suspicion.message);
    }
    if (visitor.holder && header.type == wire::FrameType::ballot) {
        NEXAR_TRY_VALUE(ballot, wire::decode_body<wire::Ballot>(header, body));
        return hand_over(std::move(ballot.message));
    }
    if (visitor.holder && header.type == wire::FrameType::view) {
        NEXAR_TRY_VALUE(view, wire::decode_body<wire::ViewFrame>(header, body));
        on_view(visitor, view.message);
        return {};
    }
    return Error(Errc::protocol_violation,
                 fmt::format("a frame of type {} is not allowed on a link to a seed",
                             wire::name(header.type)));
}

void SeedServer::on_datagram(TimePoint now, port::LinkId id, port::ConstBytes bytes) {
    const auto found = visitors_.find(id);
    if (found == visitors_.end()) return;
    Visitor& visitor = found->second;
    const auto header = wire::decode_frame_header(bytes);
    if (!header || header->type != wire::FrameType::heartbeat ||
        bytes.size() != wire::kFrameHeaderBytes + header->body_bytes) {
        return;
    }
    const auto heartbeat =
        wire::decode_body<wire::Heartbeat>(*header, bytes.subspan(wire::kFrameHeaderBytes));
    if (!heartbeat) return;
    if (membership_ && visitor.member) {
        membership_->handle(now, *visitor.member, false, heartbeat->message);
    } else if (!membership_ && visitor.greeted && visitor.told < heartbeat->message.epoch) {
        // The members have agreed on another view since they told this seed, which knows none yet.
        visitor.told = heartbeat->message.epoch;
        ask_for_view(visitor);
    }
}

void SeedServer::on_view(Visitor& visitor, const wire::ViewFrame& frame) {
    visitor.told = std::max(visitor.told, frame.epoch);
    if (membership_ && visitor.member) {
        membership_->handle(now_, *visitor.member, false, frame);
    }
    if (frame.epoch <= desk_->state().epoch) return;
    const auto brought = std::ranges::count_if(
        visitors_, [](const auto& one) { return one.second.brought.has_value(); });
    if (visitor.brought || static_cast<std::size_t>(brought) < kMostBrought) {
        visitor.brought = wire::from_wire(frame);
    }
}

/// A seed whose own view is too old to know anyone who calls, or which has none, takes the newest
/// view that two of its members bring; one, if there is only one.
void SeedServer::adopt_brought(TimePoint now) {
    std::optional<View> newest;
    for (auto& [id, visitor] : visitors_) {
        if (!visitor.brought || !visitor.holder) continue;
        const View& view = *visitor.brought;
        const NodeId& holder = visitor.holder->node;
        if (view.epoch <= desk_->state().epoch || view.find(holder) == nullptr) {
            visitor.brought.reset();
            continue;
        }
        const auto witnesses = std::ranges::count_if(visitors_, [&](const auto& other) {
            const auto& of_other = other.second.holder;
            return other.second.brought == view && of_other &&
                   (other.first == id || of_other->node != holder);
        });
        const bool enough = witnesses >= 2 || view.members.size() == 1;
        if (enough && (!newest || view.epoch > newest->epoch)) newest = view;
    }
    // Membership decides as long as this seed knows a member that is connected.
    if (!newest || (desk_->formed() && desk_->attending() > 0)) return;
    NEXAR_LOG_WARNING("this seed missed {} and continues with the view of epoch {}",
                      desk_->formed() ? "changes of the members" : "the cluster's formation",
                      newest->epoch.value());
    membership_.reset();
    vote_ = {.view = *newest};
    ++votes_;
    on_decided(now, *newest);
    if (desk_->formed()) begin_membership(now);
}

void SeedServer::propose(TimePoint now) {
    if (!membership_) return;
    if (std::exchange(proposed_changes_, desk_->joiner_changes()) != desk_->joiner_changes()) {
        const auto table = tokens();
        const std::vector<Member> joiners = desk_->joiners();
        for (const NodeId& node : proposed_) {
            if (std::ranges::find(joiners, node, &Member::node) == joiners.end()) {
                membership_->withdraw_member(node);
            }
        }
        proposed_.clear();
        for (const Member& one : joiners) proposed_.insert(one.node);
        // Without the table no token may be used more than once.
        membership_->propose_members(now, joiners,
                                     table ? desk_->limits(*table) : std::vector<SpentToken>{});
    }
    // A seed whose state was restored votes again when a view names its new incarnation.
    const auto& view = desk_->view();
    if (view && view->witness && view->witness->seed == self().seed && *view->witness != self() &&
        std::exchange(witness_proposed_, view->epoch) != view->epoch) {
        membership_->propose_witness(now, self());
    }
}

void SeedServer::on_decided(TimePoint now, const View& view) {
    desk_->decided(view);
    if (const auto table = tokens()) desk_->drop_unlicensed(*table);
    if (!desk_->formed()) {
        NEXAR_LOG_INFO("all members left; another cluster may form");
    }
    review_visitors();
    peers_changed();
    propose(now);
}

/// After a change of the view: some visitors have become members, others are none any more.
void SeedServer::review_visitors() {
    for (auto& [id, visitor] : visitors_) {
        if (!visitor.holder || !visitor.greeted || visitor.lane->closed()) continue;
        visitor.brought.reset();
        const auto& view = desk_->view();
        if (!view) {
            visitor.member.reset();  // the cluster has ended, and its members know it
            continue;
        }
        const auto member = desk_->attend(*visitor.holder);
        if (member) {
            visitor.member = visitor.holder;
        } else if (std::exchange(visitor.member, std::nullopt)) {
            if (visitor.told != Epoch(0) && visitor.told < view->epoch) {
                visitor.lane->send(wire::in_wire(*view));
            }
            visitor.lane->close("you are not a member of the newest view");
        }
    }
}

void SeedServer::send(const membership::Outgoing& outgoing) {
    for (auto& [id, visitor] : visitors_) {
        if (!visitor.greeted || !visitor.holder || visitor.holder->node != outgoing.to ||
            visitor.lane->closed()) {
            continue;
        }
        std::visit(
            [&](const auto& message) {
                if constexpr (std::is_same_v<std::decay_t<decltype(message)>, wire::Heartbeat>) {
                    visitor.lane->link().send_datagram(wire::to_bytes(message));
                } else {
                    visitor.lane->send(message);
                }
            },
            outgoing.message);
        if (const auto* view = std::get_if<wire::ViewFrame>(&outgoing.message)) {
            visitor.told = std::max(visitor.told, view->epoch);
        }
        return;
    }
}

/// Writes the vote until there is nothing new; false if it cannot be written now.
bool SeedServer::keep_vote() {
    while (auto vote = membership_->unkept()) {
        if (*vote != vote_) {
            vote_ = *std::move(vote);
            ++votes_;
        }
        if (!keep()) return false;
        membership_->kept();  // may make it vote again
    }
    return true;
}

/// Handles what Membership decided. Its messages leave only after its vote was written: a witness
/// that forgot a promise could let two views of one epoch be decided.
void SeedServer::follow_membership(TimePoint now) {
    adopt_brought(now);
    if (!desk_->formed() && membership_) end_membership();
    if (!membership_) return;
    propose(now);
    membership_->turn(now);
    for (bool again = true; again;) {
        again = false;
        const bool kept = keep_vote();
        while (const auto event = membership_->poll_event()) {
            const auto* const decided = std::get_if<membership::Decided>(&*event);
            if (decided == nullptr) continue;
            NEXAR_LOG_INFO("epoch {}: the cluster has {} members", decided->view.epoch.value(),
                           decided->view.members.size());
            on_decided(now, decided->view);
            again = true;
        }
        if (!kept || !keep()) return;
    }
    while (const auto outgoing = membership_->poll_outgoing()) send(*outgoing);
    if (!desk_->formed()) end_membership();
}

void SeedServer::tell_members() {
    if (desk_->try_form()) {
        reports_.clear();
        aborted_.reset();  // it belongs to the previous world
        NEXAR_LOG_INFO("the cluster is complete: epoch {}", desk_->state().epoch.value());
        if (const auto& formed = desk_->view()) vote_ = {.view = *formed};
        ++votes_;
        begin_membership(now_);
    }
    if (!keep()) return;
    const auto& view = desk_->view();
    std::optional<wire::ViewFrame> frame;
    const wire::Formation formation{.joined = desk_->attending(),
                                    .world_size = std::max(desk_->world(), desk_->attending()),
                                    .text = printable(desk_->status(), wire::kMaxReportTextBytes)};
    for (auto& [id, visitor] : visitors_) {
        if (!visitor.member || visitor.lane->closed()) continue;
        const bool in_view = view && view->find(visitor.member->node) != nullptr;
        if (in_view && visitor.told < view->epoch) {
            if (!frame) frame = wire::in_wire(*view);
            visitor.lane->send(*frame);
            visitor.told = view->epoch;
        }
        if (!in_view && visitor.told_changes != desk_->changes()) visitor.lane->send(formation);
        visitor.told_changes = desk_->changes();
    }
}

}  // namespace nexar::runtime
