// The links of a peer: how they are used, and what happens when one of them breaks.

#include "engine/peer_transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "engine/peer.hpp"

namespace nexar::engine {

PeerTransfers::PeerTransfers(Transfers& all, Peer& peer)
    : all_(&all), peer_(&peer), early_(0, TransferNameHash{all.limits().hash_seed}) {}

void PeerTransfers::connect(port::Link& link, std::unique_ptr<LaneReader> control,
                            std::uint64_t control_bytes) {
    NEXAR_ASSERT(!gone_ && !ended_ && links_.size() < kMaxLinks);
    const bool first = links_.empty();
    links_.push_back(std::make_unique<PeerLink>(*this, link));
    PeerLink& here = *links_.back();
    all_->by_link_.emplace(link.id(), &here);
    here.ready = first;
    if (first) {
        begin_lanes(here, std::move(control), control_bytes);
    } else {
        for (std::size_t i = 0; i < port::kLanes; ++i) {
            here.readers[i] = std::make_unique<LaneReader>(*frames_[i]);
            link.receive(static_cast<port::Lane>(i), *here.readers[i]);
        }
    }
    choose();
}

PeerLink* PeerTransfers::find(port::LinkId link) const noexcept {
    const auto found =
        std::ranges::find_if(links_, [&](const auto& one) { return one->link->id() == link; });
    return found == links_.end() ? nullptr : found->get();
}

PeerLink& PeerTransfers::any_link() const noexcept {
    const auto found = std::ranges::find_if(links_, [](const auto& one) { return one->ready; });
    return found == links_.end() ? *links_.front() : **found;
}

/// Uses the best links. A link stays in use unless another one is better.
void PeerTransfers::choose() {
    const auto best = [&](PeerLink* now, auto better) {
        if (now == nullptr || !now->ready) now = &any_link();
        for (const auto& other : links_) {
            if (other->ready && better(other->link->speed(), now->link->speed())) now = other.get();
        }
        return preferred_ != nullptr ? preferred_ : now;
    };
    streams_on_ = best(streams_on_, [](const port::LinkSpeed& a, const port::LinkSpeed& b) {
        return a.bytes_per_second > b.bytes_per_second;
    });
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        move(static_cast<port::Lane>(i),
             *best(lanes_[i].on, [](const port::LinkSpeed& a, const port::LinkSpeed& b) {
                 return a.latency < b.latency;
             }));
    }
}

bool PeerTransfers::prefer(port::LinkId link) {
    PeerLink* const found = find(link);
    if (found == nullptr) return false;
    preferred_ = found;
    choose();
    return true;
}

bool PeerTransfers::use(port::LinkId link) {
    PeerLink* const found = find(link);
    if (found == nullptr) return false;
    found->ready = true;
    choose();
    return true;
}

void PeerTransfers::cut_off(const Error& error) {
    if (!usable()) return;
    const std::string node = peer_->node.to_hex();
    NEXAR_LOG_WARNING("disconnecting node {}: {}", node, error.what());
    violation_ =
        Error(error.code(), fmt::format("node {} was disconnected: {}", node, error.cause()));
    for (const auto& one : links_) one->link->close(error.cause());
}

void PeerTransfers::close(std::string_view reason) {
    closed_ = true;
    for (const auto& one : links_) one->link->close(reason);
}

void PeerTransfers::sever(const Error& reason) {
    if (gone_) {
        for (const auto& one : links_) one->link->drop(reason.cause());
    } else {
        abandon_links(reason, true);
    }
}

bool PeerTransfers::in_tunnel() const noexcept {
    return up() && std::ranges::all_of(
                       links_, [](const auto& one) { return one->link->remote().is_tunnel(); });
}

bool PeerTransfers::settled() const noexcept {
    return std::ranges::all_of(lanes_, [](const LaneOut& lane) { return lane.backlog.empty(); }) &&
           std::ranges::all_of(links_, [](const auto& one) { return one->link->settled(); });
}

bool PeerTransfers::heard_since(TimePoint since) const noexcept {
    return std::ranges::any_of(links_,
                               [&](const auto& one) { return one->link->heard_at() >= since; });
}

bool PeerTransfers::share(std::uint64_t name, const std::shared_ptr<port::SharedMemory>& memory) {
    return usable() && std::ranges::any_of(links_, [&](const auto& one) {
               return one->ready && one->link->share(name, memory).has_value();
           });
}

void PeerTransfers::nudge() const noexcept {
    for (const auto& one : links_) one->link->nudge();
}

void PeerTransfers::on_down(PeerLink& link, const port::Down& down) {
    const auto found =
        std::ranges::find_if(links_, [&](const auto& one) { return one.get() == &link; });
    NEXAR_ASSERT(found != links_.end());
    if (!closed_ && !gone_ && !violation_) all_->owner_->on_link_down(*peer_, down);
    const std::unique_ptr<PeerLink> here = std::move(*found);
    links_.erase(found);
    if (preferred_ == here.get()) preferred_ = nullptr;
    if (streams_on_ == here.get()) streams_on_ = nullptr;
    std::vector<OutStream*> unsent = std::move(here->stranded);
    for (const auto& [id, stream] : here->streams_out) unsent.push_back(stream);
    for (OutStream* const stream : unsent) stream->link_ = nullptr;
    if (!links_.empty() && !down.peer_gone && !violation_ && !closed_ && !gone_) {
        return carry_on(*here, down, unsent);
    }
    for (OutStream* const stream : unsent) finish(*stream, port::SendOutcome::link_lost);
    detach_streams(*here, down, false);
    if (gone_) {
        end_when_released();
    } else if (links_.empty()) {
        end(down.reason);
    } else if (down.peer_gone) {
        abandon_links(down.reason);
    } else {
        // The others are being closed. What is written to them now may be lost.
        for (std::size_t i = 0; i < port::kLanes; ++i) {
            LaneOut& lane = lanes_[i];
            if (lane.next == here.get()) lane.next = nullptr;
            if (lane.on == here.get()) begin_part(static_cast<port::Lane>(i), any_link());
        }
        if (streams_on_ == nullptr) streams_on_ = &any_link();
    }
}

/// Frees the streams that arrived on a link that is down. Keeps those that arrived completely, if
/// the peer `survives` or their receiver outlives it.
void PeerTransfers::detach_streams(PeerLink& here, const port::Down& down, bool survives) {
    std::vector<std::uint64_t> due;
    for (const port::Rest& rest : down.rests) {
        const auto found = here.streams_in.find(rest.stream.value());
        if (found == here.streams_in.end() || violation_) continue;
        InStream& stream = *found->second;
        const PayloadReceiver* const receiver = stream.receiver_;
        const bool outlives = receiver != nullptr && receiver->outlives_link();
        if (stream.refused_ || (!survives && !outlives)) continue;
        stream.rest_ = rest;
        stream.link_ = nullptr;
        stream.rest_number_ = next_rest_++;
        due.push_back(stream.rest_number_);
        rests_.emplace(stream.rest_number_, std::move(found->second));
        here.streams_in.erase(found);
    }
    std::vector<PayloadReceiver*> refused;
    for (const auto& [id, stream] : here.streams_in) {
        const std::optional<TransferName>& name = stream->name();
        if (stream->early_ && name) early_.erase(*name);
        PayloadReceiver* const receiver = stream->receiver_;
        if (receiver == nullptr) continue;
        receiver->stream = nullptr;
        if (stream->refused_) refused.push_back(receiver);
    }
    here.streams_in.clear();
    if (survives) {
        for (PayloadReceiver* const receiver : refused) receiver->aborted();
    }
    // The link may have been asked to offer the rests, and has not done so.
    for (const std::uint64_t number : due) all_->rests_due_.emplace_back(this, number);
}

/// The receivers that have all bytes of a payload: only the end of its stream is missing.
std::vector<PayloadReceiver*> PeerTransfers::complete_receivers(const PeerLink& here) {
    std::vector<PayloadReceiver*> complete;
    for (const auto& [id, stream] : here.streams_in) {
        PayloadReceiver* const receiver = stream->receiver_;
        if (receiver != nullptr && !stream->refused_ && receiver->complete()) {
            complete.push_back(receiver);
        }
    }
    return complete;
}

/// Continues on another link.
void PeerTransfers::carry_on(PeerLink& here, const port::Down& down,
                             const std::vector<OutStream*>& unsent) {
    NEXAR_LOG_DEBUG("a {} link to node {} is down, another one takes over: {}", here.link->kind(),
                    peer_->node.to_hex(), down.reason.what());
    const std::vector<PayloadReceiver*> complete = complete_receivers(here);
    detach_streams(here, down, true);
    std::array<bool, port::kLanes> was_here{};
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        const auto lane = static_cast<port::Lane>(i);
        if (!down.untaken[i].bytes.empty()) {
            untaken_.push_back({.lane = lane,
                                .reader = std::move(here.readers[i]),
                                .bytes = down.untaken[i].bytes});
        }
        if (lanes_[i].next == &here) lanes_[i].next = nullptr;
        was_here[i] = lanes_[i].on == &here;
        if (was_here[i])
            begin_part(lane, lanes_[i].next != nullptr ? *std::exchange(lanes_[i].next, nullptr)
                                                       : any_link());
    }
    choose();
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        resume(here, static_cast<port::Lane>(i), down.unconfirmed[i]);
    }
    for (OutStream* const stream : unsent) {
        if (stream->cancelled_) {
            finish(*stream, port::SendOutcome::cancelled_late);
        } else {
            ++stream->attempt_;
            begin(*stream);
        }
    }
    for (PayloadReceiver* const receiver : complete) {
        if (receiver->stream != nullptr) continue;  // it kept the end of its stream
        receiver->streamed = 0;
        receiver->finished(receiver->bytes);
    }
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        const auto lane = static_cast<port::Lane>(i);
        advanced(lane);
        if (was_here[i] && !lanes_[i].full) write_backlog(lane);
    }
}

/// Ends the links of a peer that is not needed any more, or whose process has ended.
void PeerTransfers::abandon_links(const Error& reason, bool at_once) {
    gone_ = reason;
    for (const auto& one : frames_) one->stop();
    early_.clear();
    for (const auto& one : links_) {
        for (const auto& [id, stream] : one->streams_out) one->link->cancel(stream->id_);
        for (const auto& [id, stream] : one->streams_in) {
            stream->early_ = false;
            if (PayloadReceiver* const receiver = std::exchange(stream->receiver_, nullptr)) {
                receiver->stream = nullptr;
            }
            stream->refuse();
        }
        if (at_once) {
            one->link->drop(reason.cause());
        } else {
            one->link->close(reason.cause());
        }
    }
    end_when_released();
}

void PeerTransfers::end_when_released() {
    const auto is_free = [](const auto& one) {
        return one->streams_out.empty() && one->stranded.empty();
    };
    if (!ended_ && gone_ && std::ranges::all_of(links_, is_free)) end(*gone_);
}

/// Frees everything that the links used, then tells the owner that the peer is lost.
void PeerTransfers::end(const Error& reason) {
    ended_ = true;
    std::erase_if(rests_, [](const auto& entry) {
        PayloadReceiver* const receiver = entry.second->receiver_;
        if (receiver != nullptr && receiver->outlives_link()) return false;
        if (receiver != nullptr) receiver->stream = nullptr;
        return true;
    });
    early_.clear();
    untaken_.clear();
    for (const auto& one : frames_) one->stop();
    for (LaneOut& lane : lanes_) lane = {};
    all_->owner_->on_down(*peer_, reason);
}

}  // namespace nexar::engine
