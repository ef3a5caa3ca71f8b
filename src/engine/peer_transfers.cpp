// The link of a peer and its lanes.

#include "engine/peer_transfers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "engine/peer.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

namespace {

// A payload of at most this many regions is passed to the link as it is; others are gathered first.
constexpr std::size_t kMaxPieces = 16;

struct LaneName {
    port::Lane lane{};
    wire::Lane name{};
};
constexpr std::array<LaneName, port::kLanes> kLaneNames{{{port::Lane::control, wire::Lane::control},
                                                         {port::Lane::rpc, wire::Lane::rpc},
                                                         {port::Lane::eager, wire::Lane::eager}}};

}  // namespace

PeerTransfers::PeerTransfers(Transfers& all, Peer& peer)
    : all_(&all), peer_(&peer), early_(0, TransferNameHash{all.limits().hash_seed}) {}

Result<LanePayload> PeerTransfers::frame(const wire::FrameHeader& header, port::ConstBytes body) {
    if (violation_) return LanePayload{};
    return take(header, body);
}

Result<LanePayload> PeerTransfers::take(const wire::FrameHeader& header, port::ConstBytes body) {
    auto payload = all_->owner_->on_frame(*peer_, header, body);
    all_->offer_rests();
    return payload;
}

void PeerTransfers::connect(port::Link& link, std::unique_ptr<LaneReader> control) {
    NEXAR_ASSERT(link_ == nullptr);
    link_ = &link;
    all_->by_link_.emplace(link.id(), this);
    LaneReader::Taker& taker = *this;
    for (const auto& [lane, name] : kLaneNames) {
        std::unique_ptr<LaneReader>& reader = readers_[static_cast<std::size_t>(lane)];
        if (lane == port::Lane::control && control != nullptr) {
            control->hand_to(taker);
            reader = std::exchange(control, nullptr);
            continue;
        }
        const std::vector<std::byte> preamble = wire::to_bytes(wire::Preamble{.lane = name});
        const bool written = write(lane, preamble);
        NEXAR_ASSERT(written, "a new lane has room");
        reader = std::make_unique<LaneReader>(name, taker);
        link.receive(lane, *reader);
    }
}

void PeerTransfers::cut_off(const Error& error) {
    if (!usable()) return;
    const std::string node = peer_->node.to_hex();
    NEXAR_LOG_WARNING("disconnecting node {}: {}", node, error.what());
    violation_ =
        Error(error.code(), fmt::format("node {} was disconnected: {}", node, error.cause()));
    link_->close(error.cause());
}

void PeerTransfers::close(std::string_view reason) {
    if (link_ != nullptr) link_->close(reason);
}

bool PeerTransfers::write(port::Lane lane, port::ConstBytes frame,
                          std::span<const port::ConstBytes> payload) {
    LaneOut& to = out(lane);
    if (to.full) return false;
    if (payload.size() <= 1) {
        const std::array pieces{frame, payload.empty() ? port::ConstBytes{} : payload[0]};
        to.full = !link_->write(lane, std::span(pieces).first(payload.size() + 1));
        return !to.full;
    }
    to.full = !write_pieces(lane, frame, payload);
    return !to.full;
}

bool PeerTransfers::write_pieces(port::Lane lane, port::ConstBytes frame,
                                 std::span<const port::ConstBytes> payload) {
    std::array<port::ConstBytes, kMaxPieces + 1> pieces;
    pieces[0] = frame;
    if (payload.size() <= kMaxPieces) {
        std::ranges::copy(payload, pieces.begin() + 1);
        return link_->write(lane, std::span(pieces).first(payload.size() + 1));
    }
    std::vector<std::byte> gathered;
    for (const port::ConstBytes piece : payload) {
        gathered.insert(gathered.end(), piece.begin(), piece.end());
    }
    pieces[1] = gathered;
    return link_->write(lane, std::span(pieces).first(2));
}

void PeerTransfers::say(port::Lane lane, std::vector<std::byte> frame) {
    if (!usable() || write(lane, frame)) return;
    LaneOut& to = out(lane);
    to.backlog_bytes += frame.size();
    to.backlog.push_back(std::move(frame));
    if (to.backlog.size() > all_->limits_.max_backlog[static_cast<std::size_t>(lane)]) {
        cut_off(Error(Errc::limit_exceeded, "the peer does not read what this node sends"));
    }
}

void PeerTransfers::on_writable(port::Lane lane) {
    LaneOut& to = out(lane);
    to.full = false;
    while (!to.backlog.empty() && write(lane, to.backlog.front())) {
        to.backlog_bytes -= to.backlog.front().size();
        to.backlog.pop_front();
    }
    all_->owner_->on_writable(*peer_, lane);
}

void PeerTransfers::skip(port::Lane lane, const PayloadReceiver& receiver) noexcept {
    LaneReader* const reader = readers_[static_cast<std::size_t>(lane)].get();
    if (reader != nullptr) reader->skip(receiver);
}

/// Frees everything that the link used, then tells the owner.
void PeerTransfers::on_down(const port::Down& down) {
    link_ = nullptr;
    NEXAR_ASSERT(streams_out_.empty(), "a link must release everything before it goes down");
    for (const port::Rest& rest : down.rests) {
        const auto found = streams_in_.find(rest.stream.value());
        if (found == streams_in_.end() || violation_) continue;
        InStream& stream = *found->second;
        const PayloadReceiver* const receiver = stream.receiver_;
        if (receiver == nullptr || stream.refused_ || !receiver->outlives_link()) continue;
        stream.rest_ = rest;
    }
    std::erase_if(streams_in_, [](const auto& entry) {
        InStream& stream = *entry.second;
        if (stream.rest_) return false;
        if (stream.receiver_ != nullptr) stream.receiver_->stream = nullptr;
        return true;
    });
    early_.clear();
    for (auto& reader : readers_) reader.reset();
    for (LaneOut& lane : lanes_) lane = {};
    all_->owner_->on_down(*peer_, down.reason);
    // The link may have been asked to offer the rests, and has not done so.
    for (const port::Rest& rest : down.rests) all_->rests_due_.emplace_back(this, rest.stream);
}

}  // namespace nexar::engine
