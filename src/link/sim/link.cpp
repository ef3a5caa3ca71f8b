#include "link/sim/link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "link/common/farewell.hpp"
#include "link/sim/carrier.hpp"
#include "link/sim/fabric.hpp"

namespace nexar::sim {

namespace {
constexpr std::size_t kMaxReasonBytes = 200;
}  // namespace

Link::Link(Fabric& fabric, Carrier& carrier, Start start)
    : fabric_(&fabric),
      carrier_(&carrier),
      world_(&fabric.world()),
      options_(&fabric.options()),
      start_(std::move(start)),
      relayed_(options_->relayed_queue) {
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        lanes_out_[i] = std::make_shared<Pipe>(static_cast<port::Lane>(i));
        lanes_out_[i]->out.set_limit(options_->lane_window);
        lanes_out_[i]->out.opened = true;
    }
}

void Link::connect(Link* peer) {
    peer_ = peer;
    lanes_in_ = peer->lanes_out_;
    for (const PipePtr& lane : lanes_in_) lane->receiver = this;
}

void Link::dial() {
    state_ = State::handshaking;
    handshake_until_ = world_->now() + options_->handshake_timeout;
    tell({.kind = Kind::hello});
    rearm();
}

void Link::close(std::string_view reason) {
    if (state_ != State::up || dropped_) return;
    close_reason_ = reason.substr(0, kMaxReasonBytes);
    state_ = State::lingering;
    linger_until_ = world_->now() + options_->linger;
    touch();
}

void Link::drop(std::string_view reason) {
    if (state_ == State::down || std::exchange(dropped_, true)) return;
    close_reason_ = reason.substr(0, kMaxReasonBytes);
    for (const PipePtr& lane : lanes_in_) {
        if (lane != nullptr) lane->in.detach();
    }
    for (const auto& [number, pipe] : ins_) pipe->in.detach();
    arm_all();
    touch();
}

void Link::give_up() {
    if (state_ != State::handshaking) return;
    end(Error(Errc::cancelled, "this side gave up the link"), Goodbye::say);
}

void Link::touch() {
    carrier_->set_ready(*this);
}

Duration Link::late() {
    const auto most = static_cast<std::uint64_t>(weather_.jitter.count());
    if (most == 0) return weather_.delay;
    return weather_.delay + Duration(static_cast<Duration::rep>(world_->random().below(most)));
}

void Link::emit(decltype(port::LinkEvent::what) what) {
    carrier_->emit({.link = start_.id, .what = std::move(what)});
}

bool Link::expects_signals() const noexcept {
    // The acknowledgement of a message for which the lane had room need not wake anyone.
    const auto waits = [](const PipePtr& lane) {
        return lane->out.sent() < lane->bytes.end() && lane->out.sendable(lane->bytes.end()) == 0;
    };
    return state_ != State::up || !outs_.empty() ||
           std::ranges::find(lane_full_, true) != lane_full_.end() ||
           std::ranges::any_of(lanes_out_, waits) || peer_parts_ ||
           (!signals_.empty() && signals_.back().kind == Kind::goodbye);
}

TimePoint Link::timer() const noexcept {
    if (state_ == State::down) return TimePoint::max();
    TimePoint due = std::min({handshake_until_, linger_until_, end_at_, refused_at_});
    if (silent_since_ && state_ != State::waiting) {
        due = std::min(due, *silent_since_ + options_->idle_timeout);
    }
    if (is_up() && has_payload() && !severed_) due = std::min(due, free_at_);
    if (blocked_) return due;
    if (!signals_.empty() && expects_signals()) due = std::min(due, signals_.front().due);
    if (is_up() && !datagrams_in_.empty()) due = std::min(due, datagrams_in_.front().due);
    return due;
}

void Link::rearm() {
    carrier_->timers_.set(*this, timer());
    carrier_->touch();
}

void Link::arm(Pipe& pipe) {
    const bool waits = blocked_ || dropped_ || !is_up() || pipe.segments.empty();
    carrier_->arrivals_.set(pipe, waits ? TimePoint::max() : pipe.segments.front().due);
    carrier_->touch();
}

void Link::arm_all() {
    for (const PipePtr& lane : lanes_in_) {
        if (lane != nullptr) arm(*lane);
    }
    for (const auto& [number, pipe] : ins_) arm(*pipe);
}

void Link::tell(Signal signal) {
    if (peer_ == nullptr || peer_->state_ == State::down || severed_) return;
    signal.due = std::max(peer_->last_signal_, world_->now() + late());
    peer_->last_signal_ = signal.due;
    peer_->peer_parts_ = peer_->peer_parts_ || signal.kind == Kind::farewell;
    peer_->signals_.push_back(std::move(signal));
    // The timer of the first signal also covers the signals behind it.
    if (peer_->expects_signals()) peer_->rearm();
}

void Link::take_signals(TimePoint now) {
    while (state_ != State::down && !dropped_ && !signals_.empty() && signals_.front().due <= now) {
        const Signal signal = std::move(signals_.front());
        signals_.pop_front();
        take_signal(now, signal);
    }
}

void Link::take_signal(TimePoint now, const Signal& signal) {
    switch (signal.kind) {
        case Kind::hello:
            on_hello(now);
            return;
        case Kind::reply:
            come_up();
            tell({.kind = Kind::finish});
            return;
        case Kind::finish:
            come_up();
            return;
        case Kind::refusal:
            end(Error(Errc::unauthenticated,
                      fmt::format("{} refused this node in the handshake: {}; see its gate",
                                  start_.peer_name, peer_->close_reason_)),
                Goodbye::silent);
            return;
        case Kind::progress:
            on_progress(signal);
            return;
        case Kind::stop:
            on_stop(signal);
            return;
        case Kind::farewell:
            peer_parted_ = true;
            touch();
            return;
        case Kind::goodbye: {
            const std::string& words = peer_->close_reason_;
            end(Error(Errc::link_closed,
                      fmt::format("{} closed the link{}", start_.peer_name,
                                  words.empty() ? std::string()
                                                : fmt::format(": \"{}\"", printable(words)))),
                Goodbye::silent);
            return;
        }
    }
}

void Link::on_hello(TimePoint now) {
    const auto reason = carrier_->gate ? carrier_->gate(start_.peer) : std::nullopt;
    if (reason) {
        close_reason_ = reason->cause();
        tell({.kind = Kind::refusal});
        state_ = State::handshaking;
        end_half_open(*reason);
        return;
    }
    state_ = State::handshaking;
    handshake_until_ = now + options_->half_open_life;
    tell({.kind = Kind::reply});
}

void Link::come_up() {
    NEXAR_ASSERT(state_ == State::handshaking);
    state_ = State::up;
    handshake_until_ = TimePoint::max();
    emit(port::Up{.link = this, .dialed = start_.dialed});
    arm_all();
}

void Link::on_time(TimePoint now) {
    if (!blocked_) {
        take_signals(now);
        take_datagrams(now);
    }
    take_refusal(now);
    if (state_ == State::down || dropped_) return;
    const auto seconds = [](Duration time) { return std::chrono::duration<double>(time).count(); };
    if (now >= end_at_) {
        end(*end_reason_, Goodbye::silent);
    } else if (now >= handshake_until_) {
        end(Error(Errc::timed_out,
                  fmt::format(
                      "the handshake with {} did not complete in time; check that it runs and "
                      "that the path to it is open in both directions",
                      start_.peer_name)),
            Goodbye::silent);
    } else if (silent_since_ && state_ != State::waiting &&
               now >= *silent_since_ + options_->idle_timeout) {
        end(Error(Errc::timed_out,
                  fmt::format("nothing arrived from {} for {} s; it is gone, or the network "
                              "path is cut",
                              start_.peer_name, seconds(options_->idle_timeout))),
            Goodbye::silent);
    } else if (now >= linger_until_) {
        end(Error(Errc::link_closed, "this side closed the link"), Goodbye::say);
    }
}

void Link::flush(TimePoint now) {
    if (dropped_) return end(Error(Errc::link_closed, "this side dropped the link"), Goodbye::say);
    on_time(now);
    if (is_up()) {
        look_at_pipes();
        if (dropped_) return;  // by a sink
        cancel_waiting();
        open_waiting();
        write_datagrams(now);
        write_payload(now);
        if (dropped_) return;  // by a source
        report();
        say_farewell(now);
        if (state_ == State::lingering && peer_parted_ && nothing_unsent()) {
            end(Error(Errc::link_closed, "this side closed the link"), Goodbye::say);
        }
    }
    rearm();
}

bool Link::nothing_unsent() const noexcept {
    const auto acknowledged = [](const PipePtr& lane) {
        return lane->out.held(lane->bytes.end()) == 0;
    };
    return outs_.empty() && datagrams_.empty() && relayed_.empty() &&
           std::ranges::all_of(lanes_out_, acknowledged);
}

// QUIC links do the same with the ends of their control lanes.
void Link::say_farewell(TimePoint now) {
    const bool due = state_ == State::lingering || peer_parted_;
    if (!due || !nothing_unsent() || std::exchange(farewell_said_, true)) return;
    if (state_ == State::lingering) linger_until_ = std::min(linger_until_, now + link::kFarewell);
    tell({.kind = Kind::farewell});
}

void Link::end(Error reason, Goodbye goodbye) {
    NEXAR_ASSERT(state_ != State::down);
    if (goodbye == Goodbye::say) {
        tell({.kind = Kind::goodbye});
    } else if (peer_ != nullptr) {
        peer_->went_silent();
    }
    if (!is_up() && !start_.dialed) {
        end_half_open(reason);
        return;
    }
    std::vector<PipePtr> sending;
    sending.reserve(outs_.size());
    for (const auto& [number, pipe] : outs_) sending.push_back(pipe);
    for (const PipePtr& pipe : sending) settle(*pipe, port::SendOutcome::link_lost);
    port::Down down{.reason = std::move(reason)};
    if (!dropped_) {
        down.rests = take_rests();
        down.untaken = take_untaken();
        down.unconfirmed = take_unconfirmed();
    }
    disappear();
    emit(std::move(down));
}

void Link::end_half_open(const Error& reason) {
    const bool known = state_ == State::handshaking;
    disappear();
    // Nobody will forget this link, because it was never reported.
    carrier_->remove(*this);
    if (known) emit(port::Refused{.from = start_.peer_name, .reason = reason});
}

void Link::disappear() {
    state_ = State::down;
    for (const PipePtr& lane : lanes_in_) {
        if (lane != nullptr) discard(*lane);
    }
    for (const auto& [number, pipe] : std::exchange(ins_, {})) discard(*pipe);
    outs_.clear();
    for (auto& queue : queues_) queue.clear();
    for (auto& queue : unopened_) queue.clear();
    queue_set_ = 0;
    to_cancel_.clear();
    to_look_at_.clear();
    to_report_.clear();
    datagrams_.clear();
    relayed_.clear();
    datagrams_in_.clear();
    signals_.clear();
    rearm();
}

void Link::set_blocked(bool blocked) {
    if (state_ == State::down || blocked_ == blocked) return;
    if (blocked) {
        silent_since_ = silent_since_.value_or(world_->now());
    } else {
        // Datagrams that arrived during the partition are lost.
        while (!datagrams_in_.empty() && datagrams_in_.front().due <= world_->now()) {
            std::ranges::pop_heap(datagrams_in_, later);
            datagrams_in_.pop_back();
        }
        if (!peer_gone_) silent_since_.reset();
    }
    blocked_ = blocked;
    arm_all();
    rearm();
}

void Link::went_silent() {
    if (state_ == State::down) return;
    peer_gone_ = true;
    silent_since_ = silent_since_.value_or(world_->now());
    rearm();
}

void Link::end_at(TimePoint when, Error reason) {
    if (state_ == State::down || when >= end_at_) return;
    end_at_ = when;
    end_reason_ = std::move(reason);
    rearm();
}

// A random prefix of the bytes in flight to this end still arrives.
void Link::sever() {
    severed_ = true;
    if (state_ == State::down) return;
    Random& random = world_->random();
    const auto cut = [&](Pipe& pipe) {
        auto& segments = pipe.segments;
        const auto kept = static_cast<std::size_t>(random.below(segments.size() + 1));
        if (kept == segments.size()) return;
        Pipe::Segment last = segments[kept];
        const std::uint64_t before = kept == 0 ? pipe.in.arrived() : segments[kept - 1].end;
        const std::uint64_t partial = last.resets ? 0 : random.below(last.end - before + 1);
        segments.resize(kept);
        last.end = before + partial;
        last.ends = false;
        if (partial != 0) segments.push_back(last);
        arm(pipe);
    };
    for (const PipePtr& lane : lanes_in_) {
        if (lane != nullptr) cut(*lane);
    }
    for (const auto& [number, pipe] : ins_) cut(*pipe);
    signals_.resize(static_cast<std::size_t>(random.below(signals_.size() + 1)));
    rearm();
}

}  // namespace nexar::sim
