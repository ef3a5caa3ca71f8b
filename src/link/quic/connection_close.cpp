#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "link/common/farewell.hpp"
#include "link/quic/connection.hpp"
#include "link/quic/native.hpp"

// Closes a link so that each side learns which of its bytes the other has received. The closing
// side ends its control lane when the peer has acknowledged everything. The peer answers by ending
// its own lane when the same holds for it, and only then does the connection close.
namespace nexar::quic {

namespace {

constexpr std::size_t kMaxReasonBytes = 200;

}  // namespace

void Connection::close(std::string_view reason) {
    if (state_ == State::down || state_ == State::lingering || dropped_) return;
    close_reason_ = reason.substr(0, kMaxReasonBytes);
    if (state_ == State::handshaking) {
        fail(now_,
             Error(Errc::link_closed,
                   fmt::format("the link to {} was closed before it was up", path_.remote.text())),
             Closing::say);
        return;
    }
    state_ = State::lingering;
    refusals_.heard();  // only those that a probe follows count from now on
    wake();
}

/// May be called by a sink or a source, which are in use then, so the streams end later.
void Connection::drop(std::string_view reason) {
    if (state_ == State::down || std::exchange(dropped_, true)) return;
    close_reason_ = reason.substr(0, kMaxReasonBytes);
    lane_sinks_ = {};
    for (const auto& [number, stream] : ins_) stream->detach();
    for (const auto& [number, stream] : outs_) stream->dropped = true;
    wake();
}

void Connection::end_dropped(TimePoint now) {
    if (state_ == State::down) return;
    fail(now, Error(Errc::link_closed, "this side dropped the link"), Closing::say);
    // Late packets are answered as those of an unknown connection.
    gone_after_ = Duration::zero();
}

bool Connection::settled() const noexcept {
    return outs_.empty() && std::ranges::all_of(lanes_, [](const OutStream& lane) {
               return lane.queued_bytes() == 0;
           });
}

bool Connection::nothing_unsent() const noexcept {
    return settled() && datagrams_.empty() && relayed_.empty();
}

Duration Connection::three_probe_timeouts() const noexcept {
    return 3 * Duration(static_cast<Duration::rep>(ngtcp2_conn_get_pto(conn_.get())));
}

bool Connection::say_farewell(TimePoint now) {
    if (state_ == State::lingering && !linger_until_) {
        linger_until_ = now + std::max(options_.linger, three_probe_timeouts());
    }
    OutStream& control = lanes_[static_cast<std::size_t>(port::Lane::control)];
    const bool due = state_ == State::lingering || peer_ended_;
    if (!due || control.ending() || !nothing_unsent()) return false;
    if (state_ == State::lingering) {
        linger_until_ =
            std::min(*linger_until_, now + std::max(link::kFarewell, three_probe_timeouts()));
    }
    control.end();
    enqueue(control);
    return true;
}

bool Connection::may_end(TimePoint now) const noexcept {
    return (linger_until_ && now >= *linger_until_) || (peer_ended_ && nothing_unsent());
}

void Connection::take_lane_bytes(port::Down& down) {
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        down.unconfirmed[i] = {.offset = lanes_[i].acknowledged(),
                               .bytes = lanes_[i].take_unacknowledged()};
        if (InStream* lane = lane_streams_[i]; lane != nullptr) {
            down.untaken[i] = {.offset = lane->taken(), .bytes = lane->take_parked()};
        }
    }
}

void Connection::write_goodbye(TimePoint now, Outbox& out) {
    if (gone_at_ == TimePoint::max()) gone_at_ = now + gone_after_;
    if (!goodbye_due_ || !out.has_room()) return;
    goodbye_due_ = false;
    std::ranges::copy(goodbye_, out.room().begin());
    out.add(path_, 0, goodbye_.size(), false);
}

}  // namespace nexar::quic
