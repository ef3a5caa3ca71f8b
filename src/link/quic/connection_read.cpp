#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "link/quic/connection.hpp"
#include "link/quic/connection_errors.hpp"
#include "link/quic/native.hpp"

namespace nexar::quic {

namespace {

// When to probe the MTU of the path, unless a payload needs it earlier.
constexpr Duration kProbesAfter = std::chrono::milliseconds(500);
// A stream returns credit when this part of its window was consumed: smaller steps cost packets,
// larger ones may make the peer wait.
constexpr std::uint64_t kCreditDivisor = 4;

}  // namespace

bool Connection::receive(TimePoint now, const Path& path, std::uint8_t ecn,
                         std::span<const std::byte> packet) {
    if (dropped_) return false;
    if (state_ == State::down) {
        // The peer does not know that the link has ended: tell it again, at growing intervals (RFC
        // 9000 10.2.1).
        if (!goodbye_.empty() && ++packets_since_goodbye_ >= goodbye_threshold_) {
            packets_since_goodbye_ = 0;
            goodbye_threshold_ *= 2;
            goodbye_due_ = true;
            wake();
        }
        return false;
    }
    useful_ = false;
    const std::uint64_t opened = opened_;
    const std::uint64_t in_flight = bytes_in_flight();
    const ngtcp2_path native_path = native(path);
    const ngtcp2_pkt_info info{.ecn = ecn};
    const int code = ngtcp2_conn_read_pkt(conn_.get(), &native_path, &info, native(packet.data()),
                                          packet.size(), stamp(now));
    handle_read(now, code);
    if (state_ == State::down) return false;
    const bool is_new = opened_ != opened;
    if (is_new || state_ == State::handshaking) heard(now);
    // Forged packets, and answers to our own, do not count against the member.
    const bool answered = bytes_in_flight() < in_flight;
    if (answered) {
        answered_at_ = now;
        unheard_ = 0;
        moved_in_vain_ = false;
        at_once_ = 0;
    }
    if (answered && black_hole_.suspected()) black_hole_.answered(losses());
    if (is_new) look_for_stall(now);
    const bool idle = is_new && !useful_ && !answered;
    if (is_up() && idle && !idle_packets_.take(now)) {
        fail(now,
             Error(Errc::limit_exceeded,
                   fmt::format("{} sent more than {} packets per second that carry nothing, so "
                               "this node closed the link",
                               path_.remote.text(), options_.idle_packets_per_second)),
             Closing::say);
    }
    wake();
    return is_new;
}

void Connection::handle_read(TimePoint now, int code) {
    if (const auto failure = std::exchange(callback_failure_, std::nullopt)) {
        const bool restarted = failure->code() == Errc::link_closed;
        fail(now, *failure, restarted ? Closing::silent : Closing::say);
        return;
    }
    switch (code) {
        case 0:
            return;
        case NGTCP2_ERR_DRAINING:
            fail(now, describe_peer_close(), Closing::silent);
            return;
        case NGTCP2_ERR_DROP_CONN:
        case NGTCP2_ERR_RETRY:
            fail(now, describe(NGTCP2_ERR_PROTO), Closing::silent);
            return;
        default:
            fail_with(now, code);
    }
}

void Connection::fail_with(TimePoint now, int code) {
    // Tell a stranger whose handshake took too long; it may dial again at once.
    const bool own_handshake = code == NGTCP2_ERR_HANDSHAKE_TIMEOUT && dialed_;
    const bool silent = code == NGTCP2_ERR_IDLE_CLOSE || own_handshake ||
                        code == NGTCP2_ERR_DROP_CONN || code == NGTCP2_ERR_RECV_VERSION_NEGOTIATION;
    library_error_ = code;
    fail(now, describe(code), silent ? Closing::silent : Closing::say);
}

void Connection::on_up() {
    const auto& peer = tls_->peer();
    NEXAR_ASSERT(peer.has_value() != tls_->with_joiner());
    peer_ = peer.value_or(Identity{});
    if (!comes_from_peer()) {
        violated("leads to another node than its envelopes say");
        return;
    }
    state_ = State::up;
    probes_at_ = now_ + kProbesAfter;
    up_at_ = now_;
    ngtcp2_conn_set_keep_alive_timeout(conn_.get(), native(options_.keep_alive));
    begin_to_listen();
    // By convention the first streams of each side are its lanes, in order.
    for (OutStream& lane : lanes_) {
        const int code = ngtcp2_conn_open_uni_stream(conn_.get(), &lane.quic_id, &lane);
        if (code != 0) {
            callback_failure_ =
                Error(Errc::protocol_violation,
                      fmt::format("{} does not let this node open the lanes of the link",
                                  path_.remote.text()));
            return;
        }
        enqueue(lane);
    }
    around_->emit(
        {.link = id_,
         .what = port::Up{.link = this, .dialed = dialed_, .joiner = tls_->with_joiner()}});
}

bool Connection::violated(std::string_view what) {
    callback_failure_ =
        Error(Errc::protocol_violation,
              fmt::format("{} {}, so this node closed the link", path_.remote.text(), what));
    return false;
}

void Connection::on_stream_opened(std::int64_t quic_id) {
    // The number of the stream among those of its kind, RFC 9000 2.1.
    const auto ordinal = static_cast<std::uint64_t>(quic_id) >> 2U;
    std::optional<port::Lane> lane;
    if (ordinal < port::kLanes) lane = static_cast<port::Lane>(ordinal);
    const auto number = static_cast<std::uint64_t>(quic_id);
    auto owned = std::make_unique<InStream>(port::StreamId(number), quic_id, around_->pool(), lane);
    InStream& stream = *owned;
    ins_.emplace(number, std::move(owned));
    ngtcp2_conn_set_stream_user_data(conn_.get(), quic_id, &stream);
    if (!lane) {
        around_->emit({.link = id_, .what = port::Opened{.stream = stream.id()}});
        return;
    }
    lane_streams_[ordinal] = &stream;
    ngtcp2_conn_extend_max_stream_offset(conn_.get(), quic_id,
                                         options_.lane_window - options_.first_window);
    if (lane_sinks_[ordinal] != nullptr) stream.attach(*lane_sinks_[ordinal]);
}

bool Connection::on_stream_data(InStream& stream, port::ConstBytes bytes, bool ended) {
    const auto taken = stream.arrived(bytes);
    if (!taken) {
        callback_failure_ = taken.error();
        return false;
    }
    const std::size_t kept = stream.abandoned() ? 0 : bytes.size() - *taken;
    parked_ += kept;
    const bool crowded = parked_ > options_.park_budget;
    // Parked bytes stop only their own stream, until the peer's budget is used up.
    ngtcp2_conn_extend_max_offset(conn_.get(), bytes.size() - (crowded ? kept : 0));
    if (crowded) withheld_ += kept;
    if (ended) stream.ended();
    consumed(stream, *taken);
    if (ended && stream.lane) {
        if (stream.lane != port::Lane::control) return violated("ended a lane");
        peer_ended_ = true;
    } else if (stream.finished()) {
        finish(stream);
    }
    return true;
}

std::uint64_t Connection::window_of(const InStream& stream) const noexcept {
    return stream.tuner ? stream.tuner->window() : options_.lane_window;
}

// ngtcp2 announces credit when it amounts to half of a window. That is enough for the connection.
// For a stream, however, ngtcp2 knows only the first window, a fraction of the later ones.
void Connection::consumed(InStream& stream, std::uint64_t bytes) {
    if (bytes == 0 || stream.closed || stream.has_ended()) return;
    stream.owed += bytes;
    // Before open_window() only the first window arrives, however much of it the sink took.
    if (!stream.lane && !stream.tuner) return;
    if (stream.tuner) stream.owed += stream.tuner->consumed(now_, bytes, round_trips_.least());
    if (stream.owed < window_of(stream) / kCreditDivisor) return;
    ngtcp2_conn_extend_max_stream_offset(conn_.get(), stream.quic_id,
                                         std::exchange(stream.owed, 0));
}

void Connection::unpark(std::uint64_t bytes) {
    parked_ -= bytes;
    if (withheld_ != 0 && parked_ <= options_.park_budget) {
        ngtcp2_conn_extend_max_offset(conn_.get(), std::exchange(withheld_, 0));
    }
}

void Connection::finish(InStream& stream) {
    around_->emit(
        {.link = id_, .what = port::Finished{.stream = stream.id(), .bytes = stream.taken()}});
    stream.handled = true;
    erase_if_done(stream);
}

void Connection::abort(InStream& stream) {
    unpark(stream.abandon());
    if (!stream.handled) {
        around_->emit({.link = id_, .what = port::Aborted{.stream = stream.id()}});
    }
    stream.handled = true;
    erase_if_done(stream);
}

void Connection::erase_if_done(InStream& stream) {
    if (!stream.handled || !stream.closed) return;
    ins_.erase(stream.id().value());
    // Only now does the peer get credit for another stream, so a peer whose streams nobody receives
    // runs out of them.
    ngtcp2_conn_extend_max_streams_uni(conn_.get(), 1);
}

bool Connection::on_in_closed(InStream& stream, bool reset) {
    stream.closed = true;
    // A lane that ended is kept, because its sink may be woken at any time.
    if (stream.lane) return (stream.has_ended() && !reset) || violated("closed a lane");
    if (reset && !stream.handled) {
        abort(stream);
    } else {
        erase_if_done(stream);
    }
    return true;
}

bool Connection::on_reset(InStream* stream) {
    if (!resets_.take(now_)) return violated("resets streams faster than allowed");
    if (stream == nullptr) return true;
    if (stream->lane) return violated("reset a lane");
    abort(*stream);
    return true;
}

bool Connection::on_out_closed(OutStream& stream, bool reset) {
    if (stream.is_lane()) {
        if (reset || !stream.end_written()) return violated("refused a lane");
        stream.quic_id = -1;
        return true;
    }
    // ngtcp2 answers STOP_SENDING with a reset of its own and reports only this end of it.
    if (reset && !stream.outcome && !resets_.take(now_)) {
        return violated("refuses streams faster than allowed");
    }
    settle(stream, reset ? port::SendOutcome::refused : port::SendOutcome::delivered);
    return true;
}

void Connection::on_acknowledged(OutStream& stream) {
    stream.progress_at = now_;
    if (!stream.is_lane()) {
        // A source without regions stages more bytes in the freed memory.
        enqueue(stream);
        return;
    }
    const auto index = static_cast<std::size_t>(stream.write_class());
    if (lane_full_[index] && stream.queued_bytes() <= options_.lane_queue / 2) {
        lane_full_[index] = false;
        around_->emit(
            {.link = id_, .what = port::Writable{.lane = static_cast<port::Lane>(index)}});
    }
}

void Connection::on_datagram(port::ConstBytes bytes) {
    around_->emit(
        {.link = id_, .what = port::DatagramArrived{.bytes = {bytes.begin(), bytes.end()}}});
}

InStream* Connection::find_in(port::StreamId stream) noexcept {
    if (dropped_) return nullptr;
    const auto found = ins_.find(stream.value());
    return found == ins_.end() || found->second->handled ? nullptr : found->second.get();
}

void Connection::look_at(InStream& stream) {
    if (stream.queued) return;
    stream.queued = true;
    to_look_at_.push_back(stream.id().value());
    wake();
}

void Connection::receive(port::Lane lane, port::Sink& sink) {
    if (state_ == State::down || dropped_) return;
    const auto index = static_cast<std::size_t>(lane);
    NEXAR_ASSERT(lane_sinks_[index] == nullptr);
    lane_sinks_[index] = &sink;
    if (InStream* stream = lane_streams_[index]; stream != nullptr) {
        stream->attach(sink);
        look_at(*stream);
    }
}

void Connection::receive(port::StreamId stream_id, port::Sink& sink) {
    InStream* stream = find_in(stream_id);
    if (stream == nullptr) return;
    NEXAR_ASSERT(!stream->has_sink() && !stream->lane);
    stream->attach(sink);
    look_at(*stream);
}

void Connection::open_window(port::StreamId stream_id) {
    InStream* stream = find_in(stream_id);
    if (stream == nullptr || stream->tuner) return;
    NEXAR_ASSERT(!stream->lane);
    stream->tuner.emplace(options_.bulk_window, options_.bulk_window_max);
    if (stream->closed) return;
    ngtcp2_conn_extend_max_stream_offset(
        conn_.get(), stream->quic_id,
        options_.bulk_window - options_.first_window + std::exchange(stream->owed, 0));
    wake();
}

void Connection::wake_sink(port::StreamId stream_id) {
    if (InStream* stream = find_in(stream_id); stream != nullptr) look_at(*stream);
}

void Connection::wake_sink(port::Lane lane) {
    InStream* stream = lane_streams_[static_cast<std::size_t>(lane)];
    if (stream != nullptr) look_at(*stream);
}

void Connection::refuse(port::StreamId stream_id) {
    InStream* stream = find_in(stream_id);
    if (stream == nullptr || stream->lane) return;
    stream->refused = true;
    look_at(*stream);
}

void Connection::look_at_streams() {
    for (const std::uint64_t number : std::exchange(to_look_at_, {})) {
        if (dropped_) return;  // by a sink
        const auto found = ins_.find(number);
        if (found == ins_.end()) continue;
        InStream& stream = *found->second;
        stream.queued = false;
        if (stream.refused && !stream.handled) {
            if (!stream.closed) {
                ngtcp2_conn_shutdown_stream_read(conn_.get(), 0, stream.quic_id, kStreamGivenUp);
            }
            abort(stream);
        } else if (!stream.handled) {
            offer(stream);
        }
    }
}

void Connection::offer(InStream& stream) {
    const std::size_t taken = stream.retry();
    unpark(taken);
    consumed(stream, taken);
    if (stream.finished() && !stream.lane) finish(stream);
}

}  // namespace nexar::quic
