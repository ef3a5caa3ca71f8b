#include <xxhash.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "link/sim/carrier.hpp"
#include "link/sim/fabric.hpp"
#include "link/sim/link.hpp"

namespace nexar::sim {

void Link::receive(port::Lane lane, port::Sink& sink) {
    if (state_ == State::down || dropped_) return;
    Pipe& pipe = *lanes_in_[static_cast<std::size_t>(lane)];
    NEXAR_ASSERT(!pipe.in.has_sink(), "the sink of a lane can be set only once");
    pipe.in.attach(sink);
    look_at(pipe);
}

void Link::receive(port::StreamId stream, port::Sink& sink) {
    Pipe* pipe = find_in(stream);
    if (pipe == nullptr) return;
    NEXAR_ASSERT(!pipe->in.has_sink(), "the sink of a stream can be set only once");
    pipe->in.attach(sink);
    look_at(*pipe);
}

void Link::open_window(port::StreamId stream) {
    Pipe* pipe = find_in(stream);
    if (pipe == nullptr) return;
    pipe->in.window_open = true;
    look_at(*pipe);
}

void Link::wake_sink(port::StreamId stream) {
    if (Pipe* pipe = find_in(stream); pipe != nullptr) {
        pipe->in.wake();
        look_at(*pipe);
    }
}

void Link::wake_sink(port::Lane lane) {
    if (state_ == State::down || dropped_) return;
    Pipe& pipe = *lanes_in_[static_cast<std::size_t>(lane)];
    pipe.in.wake();
    look_at(pipe);
}

void Link::refuse(port::StreamId stream) {
    Pipe* pipe = find_in(stream);
    if (pipe == nullptr) return;
    pipe->in.refused = true;
    look_at(*pipe);
}

Pipe* Link::find_in(port::StreamId stream) noexcept {
    if (dropped_) return nullptr;
    const auto found = ins_.find(stream.value());
    return found == ins_.end() || !found->second->in.opened ? nullptr : found->second.get();
}

std::uint64_t Link::window(const Pipe& pipe) const noexcept {
    if (pipe.lane) return pipe.in.taken() + options_->lane_window;
    return pipe.in.window_open ? pipe.in.taken() + options_->bulk_window : options_->first_window;
}

void Link::look_at(Pipe& pipe) {
    if (!std::exchange(pipe.in.look_queued, true)) to_look_at_.push_back(pipe.shared_from_this());
    touch();
}

void Link::look_at_pipes() {
    if (to_look_at_.empty()) return;
    for (const PipePtr& pipe : std::exchange(to_look_at_, {})) {
        if (dropped_) return;  // by a sink
        pipe->in.look_queued = false;
        if (pipe->in.handled) continue;
        if (pipe->in.refused) {
            abort(*pipe);
            pipe->in.stopped = true;
            tell({.kind = Kind::stop, .pipe = pipe});
        } else {
            offer(*pipe);
            report_later(*pipe);
        }
    }
}

std::size_t Link::arrive(Pipe& pipe) {
    const PipePtr kept = pipe.shared_from_this();
    const Pipe::Segment segment = pipe.segments.front();
    pipe.segments.pop_front();
    if (!pipe.lane && !std::exchange(pipe.in.opened, true)) {
        emit(port::Opened{.stream = pipe.in_id});
    }
    std::size_t size = 0;
    if (segment.resets) {
        abort(pipe);
    } else {
        const port::ConstBytes bytes = pipe.bytes.view(pipe.in.arrived(), segment.end);
        size = bytes.size();
        world_->trace(start_.wire, start_.dialed,
                      pipe.lane ? static_cast<std::uint64_t>(*pipe.lane) : pipe.in_id.value(),
                      segment.end, XXH3_64bits(bytes.data(), bytes.size()));
        pipe.in.arrived_up_to(segment.end);
        if (segment.ends) pipe.in.ended();
        offer(pipe);
    }
    report_later(pipe);
    if (!pipe.in.handled) arm(pipe);
    return size;
}

void Link::take_datagrams(TimePoint now) {
    while (is_up() && !dropped_ && !datagrams_in_.empty() && datagrams_in_.front().due <= now) {
        std::ranges::pop_heap(datagrams_in_, later);
        std::vector<std::byte> bytes = std::move(datagrams_in_.back().bytes);
        datagrams_in_.pop_back();
        world_->trace(start_.wire, start_.dialed, XXH3_64bits(bytes.data(), bytes.size()));
        emit(port::DatagramArrived{.bytes = std::move(bytes)});
    }
}

void Link::take_refusal(TimePoint now) {
    if (now < refused_at_) return;
    refused_at_ = TimePoint::max();
    if (!is_up() || dropped_ || now < refusal_due_) return;
    refusal_due_ = now + port::kRefusedInterval;
    emit(port::PeerRefused{});
}

void Link::offer(Pipe& pipe) {
    pipe.in.offer(pipe.bytes, world_->random(), pipe.lane ? 0.0 : options_->direct_placement);
    pipe.drop_done();
    if (!pipe.lane && pipe.in.finished()) finish(pipe);
}

void Link::finish(Pipe& pipe) {
    emit(port::Finished{.stream = pipe.in_id, .bytes = pipe.in.taken()});
    discard(pipe);
}

void Link::abort(Pipe& pipe) {
    emit(port::Aborted{.stream = pipe.in_id});
    discard(pipe);
}

// The stream has ended at this end, which ignores the rest of it.
void Link::discard(Pipe& pipe) {
    const PipePtr kept = pipe.shared_from_this();
    pipe.in.abandon();
    pipe.segments.clear();
    carrier_->arrivals_.remove(pipe);
    if (!pipe.lane) ins_.erase(pipe.in_id.value());
}

std::vector<port::Rest> Link::take_rests() {
    std::vector<port::Rest> rests;
    for (const auto& [number, pipe] : ins_) {
        const Inlet& in = pipe->in;
        if (!in.has_ended() || in.refused || in.taken() == in.arrived()) continue;
        const port::ConstBytes bytes = pipe->bytes.view(in.taken(), in.arrived());
        rests.push_back(
            {.stream = pipe->in_id, .offset = in.taken(), .bytes = {bytes.begin(), bytes.end()}});
    }
    return rests;
}

std::array<port::LaneBytes, port::kLanes> Link::take_untaken() const {
    std::array<port::LaneBytes, port::kLanes> untaken;
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        if (lanes_in_[i] == nullptr) continue;
        const Inlet& in = lanes_in_[i]->in;
        const port::ConstBytes bytes = lanes_in_[i]->bytes.view(in.taken(), in.arrived());
        untaken[i] = {.offset = in.taken(), .bytes = {bytes.begin(), bytes.end()}};
    }
    return untaken;
}

std::array<port::LaneBytes, port::kLanes> Link::take_unconfirmed() const {
    std::array<port::LaneBytes, port::kLanes> unconfirmed;
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        const std::uint64_t known = lanes_out_[i]->out.acknowledged();
        const port::ConstBytes bytes = lanes_out_[i]->bytes.view(known, lanes_out_[i]->bytes.end());
        unconfirmed[i] = {.offset = known, .bytes = {bytes.begin(), bytes.end()}};
    }
    return unconfirmed;
}

void Link::report_later(Pipe& pipe) {
    if (!std::exchange(pipe.in.report_queued, true)) to_report_.push_back(pipe.shared_from_this());
    touch();
}

void Link::report() {
    // The loop below does not add to the list.
    for (const PipePtr& pipe : to_report_) {
        pipe->in.report_queued = false;
        if (pipe->in.stopped) continue;
        tell({.kind = Kind::progress,
              .pipe = pipe,
              .acknowledged = pipe->in.arrived(),
              .limit = window(*pipe),
              .all = pipe->in.has_ended(),
              .retired = pipe->in.handled});
    }
    to_report_.clear();
}

}  // namespace nexar::sim
