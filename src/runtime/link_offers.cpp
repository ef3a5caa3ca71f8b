#include "runtime/link_offers.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/printable.hpp"

namespace nexar::runtime {

namespace {

/// How long a side waits for the other one's invitation, and for its word that it has the link. The
/// handshake has its own timeout.
constexpr Duration kPatience = std::chrono::seconds(3);

}  // namespace

void LinkOffers::add(std::string_view kind, port::Carrier& carrier) {
    kinds_.push_back({.name = std::string(kind), .carrier = &carrier});
}

void LinkOffers::begin(TimePoint now, const View& view, const Identity& me,
                       const schedule::Links& links) {
    const auto host_of = [&](std::size_t rank) {
        return links.host(static_cast<std::uint32_t>(rank));
    };
    const auto self = std::ranges::find(view.members, me.node, &Member::node);
    const auto own = host_of(static_cast<std::size_t>(self - view.members.begin()));
    std::erase_if(offers_, [&](const Offer& offer) {
        return view.find(offer.peer.node) == nullptr && !offer.link;
    });
    for (std::size_t rank = 0; rank < view.members.size(); ++rank) {
        const NodeId& node = view.members[rank].node;
        const bool known = std::ranges::any_of(
            offers_, [&](const Offer& offer) { return offer.peer.node == node; });
        if (known || node == me.node || host_of(rank) != own) continue;
        for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
            offers_.push_back({.kind = kind,
                               .peer = {.cluster = me.cluster,
                                        .node = node,
                                        .incarnation = view.members[rank].incarnation},
                               .invites = me.node < node});
        }
    }
    quiet_ = offers_.empty();
    begun_ = true;
    turn(now);
}

LinkOffers::Offer* LinkOffers::find(const NodeId& node, std::string_view kind) noexcept {
    const auto found = std::ranges::find_if(offers_, [&](const Offer& offer) {
        return offer.peer.node == node && kinds_[offer.kind].name == kind;
    });
    return found == offers_.end() ? nullptr : &*found;
}

void LinkOffers::fail(Offer& offer, std::string why) {
    offer.state = State::failed;
    ++changes_;
    offer.why = std::move(why);
    NEXAR_LOG_DEBUG("no further link to node {} because {}", offer.peer.node.to_hex(), offer.why);
}

void LinkOffers::handle(TimePoint now, const port::LinkEvent& event) {
    const auto found = std::ranges::find_if(
        offers_, [&](const Offer& offer) { return offer.link && *offer.link == event.link; });
    if (found == offers_.end()) return;
    if (std::holds_alternative<port::Up>(event.what)) {
        found->state = State::up;
        found->until = now + kPatience;
        engine_->send_link_news(found->peer.node, wire::LinkReady{kinds_[found->kind].name});
    } else if (const auto* down = std::get_if<port::Down>(&event.what)) {
        found->link.reset();
        if (found->state == State::failed) return;
        const std::string& why = down->reason.cause();
        if (found->state == State::begun && !found->invites) {
            // Only this side may know why. The other one would wait for the handshake.
            engine_->send_link_news(found->peer.node,
                                    wire::LinkRefusal{kinds_[found->kind].name, why});
        }
        fail(*found, why);
    }
}

void LinkOffers::turn(TimePoint now) {
    while (const auto news = engine_->poll_link_news()) {
        std::visit([&](const auto& message) { take(now, news->node, message); }, news->message);
    }
    if (quiet_) return;
    quiet_ = true;
    for (Offer& offer : offers_) {
        if (offer.state < State::used) look_at(now, offer);
        quiet_ = quiet_ && offer.state >= State::used;
    }
}

void LinkOffers::look_at(TimePoint now, Offer& offer) {
    if (offer.state == State::unconnected) {
        if (!engine_->is_connected(offer.peer.node)) return;
        offer.state = State::waiting;
        offer.until = now + kPatience;
        if (offer.invites) return invite(now, offer);
    }
    if (offer.state == State::up && offer.peer_ready) return use(offer);
    if (now < offer.until) return;
    if (offer.state == State::waiting) fail(offer, "the peer did not offer it in time");
    if (offer.state == State::up) fail(offer, "the peer did not say in time that it has the link");
}

void LinkOffers::use(Offer& offer) {
    // False: the link is down, and its event follows.
    if (!offer.link || !engine_->use_link(offer.peer.node, *offer.link)) return;
    offer.state = State::used;
    ++changes_;
}

void LinkOffers::invite(TimePoint now, Offer& offer) {
    const Kind& kind = kinds_[offer.kind];
    auto invitation = kind.carrier->invite(now, offer.peer);
    if (!invitation) {
        const std::string& why = invitation.error().cause();
        engine_->send_link_news(offer.peer.node, wire::LinkRefusal{kind.name, why});
        return fail(offer, why);
    }
    offer.link = invitation->link;
    offer.state = State::begun;
    engine_->send_link_news(offer.peer.node,
                            wire::LinkOffer{kind.name, std::move(invitation->bytes)});
}

void LinkOffers::take(TimePoint now, const NodeId& from, const wire::LinkOffer& invitation) {
    Offer* const offer = find(from, invitation.kind);
    // Offers may cross with the view that names the member; it then offers nothing again.
    if (offer == nullptr || offer->invites || offer->state > State::waiting) {
        return engine_->send_link_news(
            from, wire::LinkRefusal{invitation.kind, "the other node does not use such a link"});
    }
    const Kind& kind = kinds_[offer->kind];
    auto begun = kind.carrier->accept(now, offer->peer, invitation.invitation);
    if (!begun) {
        const std::string& why = begun.error().cause();
        engine_->send_link_news(from, wire::LinkRefusal{kind.name, why});
        return fail(*offer, why);
    }
    offer->link = *begun;
    offer->state = State::begun;
    quiet_ = false;
}

void LinkOffers::take(TimePoint /*now*/, const NodeId& from, const wire::LinkReady& ready) {
    Offer* const offer = find(from, ready.kind);
    if (offer == nullptr) return;
    offer->peer_ready = true;
    // After the patience of this side: the link is there, so it is used.
    if (offer->state == State::failed && offer->link) use(*offer);
}

void LinkOffers::take(TimePoint /*now*/, const NodeId& from, const wire::LinkRefusal& refusal) {
    Offer* const offer = find(from, refusal.kind);
    if (offer == nullptr || offer->state >= State::up) return;
    fail(*offer, printable(refusal.why, wire::kMaxReportTextBytes));
    if (offer->link) kinds_[offer->kind].carrier->abandon(*offer->link);
}

std::optional<TimePoint> LinkOffers::next_deadline() const noexcept {
    std::optional<TimePoint> first;
    if (quiet_) return first;
    for (const Offer& offer : offers_) {
        if (offer.state != State::waiting && offer.state != State::up) continue;
        first = first ? std::min(*first, offer.until) : offer.until;
    }
    return first;
}

bool LinkOffers::settled() const noexcept {
    return std::ranges::all_of(offers_,
                               [](const Offer& offer) { return offer.state >= State::used; });
}

bool LinkOffers::settled_with(const NodeId& node) const noexcept {
    return std::ranges::all_of(offers_, [&](const Offer& offer) {
        return offer.peer.node != node || offer.state >= State::used;
    });
}

std::string LinkOffers::why_not(const NodeId& node) const {
    bool offered = false;
    for (const Offer& offer : offers_) {
        if (offer.peer.node != node) continue;
        if (offer.state == State::failed) return offer.why;
        offered = true;
    }
    if (offered || !begun_ || kinds_.empty()) return {};
    return "the two have different addresses, so they run on different hosts or in different "
           "network namespaces (containers)";
}

bool LinkOffers::has_link(const NodeId& node) const noexcept {
    return std::ranges::any_of(offers_, [&](const Offer& offer) {
        return offer.peer.node == node && offer.state == State::used;
    });
}

}  // namespace nexar::runtime
