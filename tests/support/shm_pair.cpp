#include "support/shm_pair.hpp"

#include <poll.h>

#include <algorithm>
#include <utility>

namespace nexar::testing {

ShmNode::ShmNode(sim::World& world, const Identity& identity, const shm::LinkOptions& options)
    : NodeCarrier(world), identity_(identity), carrier_(std::move(*shm::Carrier::open(options))) {}

void ShmNode::driven_by(sim::Actor& actor) {
    world().always_ask(actor);
    NodeCarrier::driven_by(actor);
}

bool ShmNode::on_ready(TimePoint now) {
    if (notices_at_ && now < *notices_at_) return false;
    notices_at_.reset();
    carrier_->wake_up();
    return carrier_->on_ready(now);
}

std::optional<TimePoint> ShmNode::next_deadline() const {
    if (!notices_at_) {
        pollfd descriptor{.fd = carrier_->descriptor(), .events = POLLIN, .revents = 0};
        if (!carrier_->fall_asleep() || ::poll(&descriptor, 1, 0) == 1) {
            notices_at_ = world().now() + kNoticesAfter;
        }
    }
    const auto due = carrier_->next_deadline();
    if (!due || !notices_at_) return due ? due : notices_at_;
    return std::min(*due, *notices_at_);
}

std::optional<port::LinkEvent> ShmNode::poll_event() {
    while (auto event = carrier_->poll_event()) {
        const bool unknown = not_up_.erase(event->link.value()) != 0;
        if (!unknown || !std::holds_alternative<port::Down>(event->what)) return event;
        carrier_->forget(event->link);
    }
    return std::nullopt;
}

Result<port::LinkId> ShmNode::dial(TimePoint now, const port::DialTarget& target) {
    const auto* member = std::get_if<port::MemberTarget>(&target.peer);
    if (member == nullptr) return carrier_->dial(now, target);
    const bool expected = member->node == peer_->identity_.node;
    auto invitation =
        carrier_->invite(now, {.node = member->node, .incarnation = peer_->identity_.incarnation});
    if (!invitation) return invitation.error();
    if (!expected) {
        auto text = *shm::InvitationText::decode(invitation->bytes);
        text.presented.back() ^= std::byte{1};
        invitation->bytes = text.encoded();
    }
    const auto link = peer_->carrier_->accept(now, identity_, invitation->bytes);
    if (link) peer_->not_up_.insert(link->value());
    return invitation->link;
}

ShmPair::ShmPair(const shm::LinkOptions& options)
    : world(1),
      a(world, sim::Fabric::identity(1), options),
      b(world, sim::Fabric::identity(2), options),
      client_side(a),
      server_side(b) {
    a.set_peer(b);
    b.set_peer(a);
}

LinkEnd& ShmPair::dial() {
    const auto id =
        a.dial(world.now(), {.peer = port::MemberTarget{.node = b.identity().node}}).value();
    client_ = &client_side.dialed(id);
    return *client_;
}

bool ShmPair::connect() {
    dial();
    return run_until(
        [&] { return client_->is_up() && server_side.accepted_count() != 0 && server().is_up(); });
}

}  // namespace nexar::testing
