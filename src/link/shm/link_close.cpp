#include <algorithm>
#include <utility>

#include "link/common/farewell.hpp"
#include "link/shm/carrier.hpp"
#include "link/shm/link.hpp"

// Closes a link so that each side learns which of its bytes the other has received: the closing
// side says farewell when the peer has read everything, the peer answers when the same holds for
// it, and only then does the link end.
namespace nexar::shm {

void Link::close(std::string_view reason) {
    if (state_ != State::up || dropped_) return;
    close_reason_ = reason.substr(0, kMaxReasonBytes);
    state_ = State::lingering;
    touch();
}

/// May be called by a sink or a source, which are in use then, so the memory is unmapped later. The
/// peer notices the end of the link when the socket is closed.
void Link::drop(std::string_view reason) {
    if (state_ == State::down || std::exchange(dropped_, true)) return;
    close_reason_ = reason.substr(0, kMaxReasonBytes);
    carrier_->detach(*this);
    for (InLane& lane : lanes_in_) lane.detach();
    for (const auto& [number, stream] : ins_) stream->detach();
    touch();
}

bool Link::nothing_unsent() noexcept {
    return outs_.empty() && to_reset_.empty() && writer_.all_read() &&
           std::ranges::all_of(lanes_out_, [](const OutLane& lane) { return lane.queue.empty(); });
}

void Link::say_farewell(TimePoint now) {
    if (state_ == State::lingering && !std::exchange(linger_armed_, true)) {
        linger_until_ = now + options_->linger;
    }
    const bool due = state_ == State::lingering || peer_parted_;
    if (!due || farewell_said_ || !nothing_unsent() || !writer_.has_room(0)) return;
    farewell_said_ = true;
    if (state_ == State::lingering) linger_until_ = std::min(linger_until_, now + link::kFarewell);
    put(RecordKind::farewell, 0, 0);
}

std::vector<port::Rest> Link::take_rests() {
    std::vector<port::Rest> rests;
    for (const auto& [number, stream] : ins_) {
        if (!stream->ended || stream->refused || stream->handled) continue;
        const port::ConstBytes bytes = stream->parked();
        if (bytes.empty()) continue;
        rests.push_back({.stream = stream->id(),
                         .offset = stream->taken(),
                         .bytes = {bytes.begin(), bytes.end()}});
    }
    return rests;
}

port::LaneBytes Link::untaken(std::size_t lane) const {
    const InLane& in = lanes_in_[lane];
    return {.offset = in.taken(), .bytes = {in.parked().begin(), in.parked().end()}};
}

// The records that the peer has not read are still in our ring. The peer may have set the position
// from which we read to anything between two that were valid; then it only spoils its own bytes.
void Link::collect_unconfirmed(std::array<port::LaneBytes, port::kLanes>& out) const {
    std::uint64_t at = writer_.read();
    while (at < writer_.written()) {
        const RecordHead head = writer_.head_at(at);
        if (head.bytes > max_content(writer_.size()) ||
            record_bytes(head.bytes) > writer_.written() - at) {
            break;
        }
        if (head.kind == static_cast<std::uint8_t>(RecordKind::lane) && head.detail < out.size()) {
            const port::ConstBytes bytes(writer_.content_at(at), head.bytes);
            auto& lane = out[head.detail].bytes;
            lane.insert(lane.end(), bytes.begin(), bytes.end());
        }
        at += record_bytes(head.bytes);
    }
    for (std::size_t i = 0; i < out.size(); ++i) {
        // With a wrong position there may be more bytes than were ever written to the lane.
        const auto in_ring = std::min<std::uint64_t>(out[i].bytes.size(), lanes_out_[i].sent);
        out[i].bytes.resize(static_cast<std::size_t>(in_ring));
        out[i].offset = lanes_out_[i].sent - in_ring;
        const port::ConstBytes queued = lanes_out_[i].queue.view();
        out[i].bytes.insert(out[i].bytes.end(), queued.begin(), queued.end());
    }
}

}  // namespace nexar::shm
