// The lanes of a peer: on which link each is, and how it moves to another one.

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "engine/peer_transfers.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

namespace {

// A payload of at most this many regions is passed to the link as it is; others are gathered first.
constexpr std::size_t kMaxPieces = 16;

constexpr std::array<wire::Lane, port::kLanes> kLaneNames{wire::Lane::control, wire::Lane::rpc,
                                                          wire::Lane::eager};

constexpr wire::Lane name_of(port::Lane lane) noexcept {
    return kLaneNames[static_cast<std::size_t>(lane)];
}

constexpr wire::ContinuedLane continued(port::Lane lane) noexcept {
    return static_cast<wire::ContinuedLane>(name_of(lane));
}

port::Lane lane_of(wire::Lane name) noexcept {
    return static_cast<port::Lane>(std::ranges::find(kLaneNames, name) - kLaneNames.begin());
}

/// Where on its link the byte at `position` of the lane is.
std::uint64_t offset_of(const PeerLink::Part& part, std::uint64_t position) noexcept {
    return part.offset + (position - part.position);
}

}  // namespace

Result<LanePayload> PeerTransfers::frame(const wire::FrameHeader& header, port::ConstBytes body) {
    if (violation_) return LanePayload{};
    return take(header, body);
}

std::size_t PeerTransfers::take_at_once(port::ConstBytes bytes) {
    if (violation_) return 0;
    const std::size_t taken = all_->owner_->on_eager(*peer_, bytes);
    if (taken != 0) all_->offer_rests();
    return taken;
}

Result<LanePayload> PeerTransfers::take(const wire::FrameHeader& header, port::ConstBytes body) {
    auto payload = all_->owner_->on_frame(*peer_, header, body);
    all_->offer_rests();
    return payload;
}

void PeerTransfers::begin_lanes(PeerLink& here, std::unique_ptr<LaneReader> control,
                                std::uint64_t control_bytes) {
    LaneReader::Taker& taker = *this;
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        const auto lane = static_cast<port::Lane>(i);
        LaneOut& to = lanes_[i];
        to.on = &here;
        here.parts[i].push_back({.offset = wire::kPreambleBytes});
        if (lane == port::Lane::control && control != nullptr) {
            control->hand_to(taker);
            to.position = control_bytes;
            here.readers[i] = std::exchange(control, nullptr);
            frames_[i] = here.readers[i]->release_frames();
            continue;
        }
        const std::vector<std::byte> preamble =
            wire::to_bytes(wire::Preamble{.lane = name_of(lane)});
        const port::ConstBytes piece(preamble);
        // A new lane has room, unless the link has ended and its Down follows.
        to.full = !here.link->write(lane, {&piece, 1});
        frames_[i] = std::make_unique<FrameReader>(name_of(lane), taker);
        here.readers[i] = std::make_unique<LaneReader>(*frames_[i]);
        here.link->receive(lane, *here.readers[i]);
    }
}

bool PeerTransfers::put(LaneOut& to, port::Lane lane, std::span<const port::ConstBytes> pieces,
                        std::uint64_t bytes) {
    to.full = !to.on->link->write(lane, pieces);
    if (to.full) return false;
    to.position += bytes;
    return true;
}

bool PeerTransfers::write(port::Lane lane, port::ConstBytes frame,
                          std::span<const port::ConstBytes> payload) {
    LaneOut& to = out(lane);
    if (to.full) return false;
    if (payload.size() > 1) return put_gathered(to, lane, frame, payload);
    const std::array pieces{frame, payload.empty() ? port::ConstBytes{} : payload[0]};
    return put(to, lane, std::span(pieces).first(payload.size() + 1),
               frame.size() + pieces[1].size());
}

bool PeerTransfers::put_gathered(LaneOut& to, port::Lane lane, port::ConstBytes frame,
                                 std::span<const port::ConstBytes> payload) {
    std::uint64_t bytes = frame.size();
    for (const port::ConstBytes piece : payload) bytes += piece.size();
    std::array<port::ConstBytes, kMaxPieces + 1> pieces;
    pieces[0] = frame;
    if (payload.size() <= kMaxPieces) {
        std::ranges::copy(payload, pieces.begin() + 1);
        return put(to, lane, std::span(pieces).first(payload.size() + 1), bytes);
    }
    std::vector<std::byte> gathered;
    for (const port::ConstBytes piece : payload) {
        gathered.insert(gathered.end(), piece.begin(), piece.end());
    }
    pieces[1] = gathered;
    return put(to, lane, std::span(pieces).first(2), bytes);
}

void PeerTransfers::say(port::Lane lane, std::vector<std::byte> frame) {
    if (!usable()) return;
    LaneOut& to = out(lane);
    if (to.backlog.empty() && write(lane, frame)) return;
    to.backlog_bytes += frame.size();
    to.backlog.push_back(std::move(frame));
    if (to.backlog.size() > all_->limits_.max_backlog[static_cast<std::size_t>(lane)]) {
        cut_off(Error(Errc::limit_exceeded, "the peer does not read what this node sends"));
    }
}

/// Moves a lane to another link, now or when there is room to say so on the old one.
void PeerTransfers::move(port::Lane lane, PeerLink& to) {
    LaneOut& moving = out(lane);
    moving.next = moving.on == &to ? nullptr : &to;
    if (moving.next != nullptr && !moving.full) try_move(lane);
}

void PeerTransfers::try_move(port::Lane lane) {
    LaneOut& moving = out(lane);
    wire::Moved last{.position = moving.position};
    last.position += wire::to_bytes(last).size();
    const std::vector<std::byte> frame = wire::to_bytes(last);
    const port::ConstBytes piece(frame);
    if (!put(moving, lane, {&piece, 1}, frame.size())) return;
    moving.on->parts[static_cast<std::size_t>(lane)].back().end = moving.position;
    begin_part(lane, *std::exchange(moving.next, nullptr));
}

void PeerTransfers::begin_part(port::Lane lane, PeerLink& to) {
    LaneOut& moving = out(lane);
    moving.on = &to;
    moving.full = false;
    moving.preamble_due = true;
    write_preamble(lane);
}

void PeerTransfers::write_preamble(port::Lane lane) {
    LaneOut& moving = out(lane);
    const std::vector<std::byte> preamble = wire::to_bytes(wire::Preamble{
        .lane = wire::Lane::continued, .continues = continued(lane), .position = moving.position});
    const port::ConstBytes piece(preamble);
    if (!put(moving, lane, {&piece, 1}, 0)) return;
    moving.preamble_due = false;
    auto& parts = moving.on->parts[static_cast<std::size_t>(lane)];
    const std::uint64_t before =
        parts.empty() ? 0 : offset_of(parts.back(), parts.back().end.value_or(0));
    parts.push_back({.offset = before + preamble.size(), .position = moving.position});
}

void PeerTransfers::on_writable(const PeerLink& link, port::Lane lane) {
    LaneOut& to = out(lane);
    if (to.on != &link) return;
    to.full = false;
    if (to.preamble_due) write_preamble(lane);
    if (!to.full && to.next != nullptr) try_move(lane);
    if (!to.full) write_backlog(lane);
}

void PeerTransfers::write_backlog(port::Lane lane) {
    LaneOut& to = out(lane);
    while (!to.backlog.empty() && write(lane, to.backlog.front())) {
        to.backlog_bytes -= to.backlog.front().size();
        to.backlog.pop_front();
    }
    all_->owner_->on_writable(*peer_, lane);
}

/// Sends the bytes of a lane that a broken link did not deliver on a stream of another one.
void PeerTransfers::resume(const PeerLink& broken, port::Lane lane,
                           const port::LaneBytes& unconfirmed) {
    const std::uint64_t begin = unconfirmed.offset;
    const std::uint64_t end = begin + unconfirmed.bytes.size();
    for (const PeerLink::Part& part : broken.parts[static_cast<std::size_t>(lane)]) {
        const std::uint64_t from = std::max(begin, part.offset);
        const std::uint64_t to = part.end ? std::min(end, offset_of(part, *part.end)) : end;
        if (from >= to) continue;
        const auto first = unconfirmed.bytes.begin() + static_cast<std::ptrdiff_t>(from - begin);
        tails_out_.push_back(std::make_unique<LaneTailOut>(
            *this, std::vector<std::byte>(first, first + static_cast<std::ptrdiff_t>(to - from))));
        send(*tails_out_.back(),
             {.kind = TransferKind::lane,
              .number = part.position + (from - part.offset),
              .lane = continued(lane)},
             port::Priority::critical);
    }
}

void PeerTransfers::skip(port::Lane lane, const PayloadReceiver& receiver) noexcept {
    FrameReader* const reader = frames_[static_cast<std::size_t>(lane)].get();
    if (reader != nullptr) reader->skip(receiver);
}

void PeerTransfers::advanced(wire::Lane lane) {
    advanced(lane_of(lane));
}

/// Lets those continue that waited for earlier bytes of a lane.
void PeerTransfers::advanced(port::Lane lane) {
    if (std::exchange(advancing_, true)) {
        advanced_again_ = true;
        return;
    }
    do {
        advanced_again_ = false;
        advance_once(lane);
    } while (advanced_again_);
    advancing_ = false;
}

void PeerTransfers::advance_once(port::Lane lane) {
    const auto index = static_cast<std::size_t>(lane);
    for (const auto& one : links_) {
        if (one->readers[index]->stops_waiting()) one->link->wake_sink(lane);
    }
    for (const auto& tail : tails_in_) {
        if (tail->lane() == lane && tail->stream != nullptr) tail->stream->open();
    }
    for (Untaken& one : untaken_) {
        if (one.lane != lane) continue;
        one.taken += one.reader->write(0, port::ConstBytes(one.bytes).subspan(one.taken));
    }
    std::erase_if(untaken_, [](const Untaken& one) { return one.taken == one.bytes.size(); });
    const auto is_waiting = [&](const auto& one) { return one->readers[index]->waits(); };
    frames(lane).set_awaited(!tails_in_.empty() || !untaken_.empty() ||
                             std::ranges::any_of(links_, is_waiting));
}

void LaneTailOut::released(port::SendOutcome /*outcome*/) {
    // Destroys this object.
    std::erase_if(owner_->tails_out_, [&](const auto& one) { return one.get() == this; });
}

std::size_t LaneTailIn::write(std::uint64_t offset, port::ConstBytes from) noexcept {
    FrameReader& frames = owner_->frames(lane_);
    if (frames.stopped()) return from.size();
    const std::uint64_t at = position_ + offset;
    if (at > frames.position()) {
        frames.set_awaited(true);
        return 0;
    }
    const auto known =
        static_cast<std::size_t>(std::min<std::uint64_t>(frames.position() - at, from.size()));
    const std::size_t taken = known + frames.read(from.subspan(known));
    frames.take_moved();
    frames.tell_advanced();
    return taken;
}

void LaneTailIn::attached() {
    stream->open();
}

void LaneTailIn::finished(std::uint64_t /*came*/) {
    PeerTransfers& owner = *owner_;
    const port::Lane lane = lane_;
    aborted();
    owner.advanced(lane);
}

void LaneTailIn::aborted() {
    // Destroys this object.
    std::erase_if(owner_->tails_in_, [&](const auto& one) { return one.get() == this; });
}

}  // namespace nexar::engine
