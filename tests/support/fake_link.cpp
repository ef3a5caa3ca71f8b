#include "support/fake_link.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/assert.hpp"

namespace nexar::testing {

namespace {

/// A link may read the source's memory until it reports Released.
void read_again(const port::Source& source) {
    std::uint64_t bytes = 0;
    static volatile unsigned seen = 0;
    for (const port::ConstBytes region : source.regions()) {
        bytes += region.size();
        for (const std::byte b : region) seen = seen + std::to_integer<unsigned>(b);
    }
    NEXAR_ASSERT(bytes == source.size());
}

}  // namespace

void FakeLink::emit(decltype(port::LinkEvent::what) what) {
    events_.push_back({.link = id_, .what = std::move(what)});
}

FakeLink::Incoming* FakeLink::find(port::StreamId stream) {
    if (dropped_) return nullptr;
    const auto found = ins_.find(stream.value());
    return found == ins_.end() ? nullptr : &found->second;
}

bool FakeLink::write(port::Lane lane, std::span<const port::ConstBytes> pieces) {
    if (down_) return true;
    if (dropped_) return false;
    LaneEnd& end = lanes_[static_cast<std::size_t>(lane)];
    std::size_t bytes = 0;
    for (const port::ConstBytes piece : pieces) bytes += piece.size();
    if (bytes > end.room) {
        end.full = true;
        return false;
    }
    end.room -= bytes;
    for (const port::ConstBytes piece : pieces) {
        end.written.insert(end.written.end(), piece.begin(), piece.end());
    }
    return true;
}

void FakeLink::set_room(port::Lane lane, std::size_t bytes) {
    LaneEnd& end = lanes_[static_cast<std::size_t>(lane)];
    end.room = bytes;
    if (bytes != 0 && std::exchange(end.full, false) && !down_) {
        emit(port::Writable{.lane = lane});
    }
}

port::StreamId FakeLink::send(port::Source& source, const port::StreamOptions& options) {
    const port::StreamId stream(next_++);
    if (down_) {
        // Down is the last event and must be polled after this one.
        const auto before = events_.empty() ? events_.end() : std::prev(events_.end());
        events_.insert(before, {.link = id_,
                                .what = port::Released{.stream = stream,
                                                       .outcome = port::SendOutcome::link_lost}});
        return stream;
    }
    outs_.emplace(stream.value(), Outgoing{.source = &source,
                                           .prefix = {options.prefix.begin(), options.prefix.end()},
                                           .cancelled = false});
    return stream;
}

void FakeLink::cancel(port::StreamId stream) {
    const auto found = outs_.find(stream.value());
    if (found != outs_.end()) found->second.cancelled = true;
}

void FakeLink::receive(port::Lane lane, port::Sink& sink) {
    LaneEnd& end = lanes_[static_cast<std::size_t>(lane)];
    NEXAR_ASSERT(end.sink == nullptr, "a lane gets its sink only once");
    end.sink = &sink;
}

void FakeLink::receive(port::StreamId stream, port::Sink& sink) {
    Incoming* in = find(stream);
    if (in == nullptr) return;
    NEXAR_ASSERT(in->sink == nullptr, "a stream gets its sink only once");
    in->sink = &sink;
}

void FakeLink::open_window(port::StreamId stream) {
    if (Incoming* in = find(stream); in != nullptr) in->window_open = true;
}

void FakeLink::wake_sink(port::StreamId stream) {
    if (Incoming* in = find(stream); in != nullptr) in->pending = false;
}

void FakeLink::refuse(port::StreamId stream) {
    if (Incoming* in = find(stream); in != nullptr) in->refused = true;
}

void FakeLink::close(std::string_view reason) {
    if (!down_ && !closed_) closed_ = std::string(reason);
}

void FakeLink::drop(std::string_view reason) {
    if (!down_ && !dropped_) dropped_ = std::string(reason);
}

void FakeLink::come_up() {
    emit(port::Up{.link = this, .dialed = true});
}

void FakeLink::arrive(port::Lane lane, port::ConstBytes bytes) {
    LaneEnd& end = lanes_[static_cast<std::size_t>(lane)];
    if (down_ || dropped_) return;
    NEXAR_ASSERT(end.sink != nullptr, "handle Up first");
    const std::size_t taken = end.sink->write(end.taken, bytes);
    NEXAR_ASSERT(taken == bytes.size(), "the sink of a lane must take all bytes");
    end.taken += taken;
}

port::StreamId FakeLink::open() {
    const port::StreamId stream(next_++);
    if (down_ || dropped_) return stream;
    ins_.try_emplace(stream.value());
    emit(port::Opened{.stream = stream});
    return stream;
}

void FakeLink::offer(Incoming& in) {
    std::size_t done = 0;
    const auto left = [&] { return port::ConstBytes(in.parked).subspan(done); };
    while (in.sink != nullptr && !in.pending && !dropped_ && !left().empty()) {
        const port::Bytes place = direct ? in.sink->region(in.taken, left().size()) : port::Bytes();
        std::size_t taken = std::min(place.size(), left().size());
        if (taken != 0) {
            std::memcpy(place.data(), left().data(), taken);
        } else {
            taken = in.sink->write(in.taken, left());
            in.pending = taken < left().size();
        }
        in.taken += taken;
        done += taken;
    }
    in.parked.erase(in.parked.begin(), in.parked.begin() + static_cast<std::ptrdiff_t>(done));
}

std::size_t FakeLink::arrive(port::StreamId stream, port::ConstBytes bytes) {
    Incoming* in = find(stream);
    if (in == nullptr || in->ended) return 0;
    const std::uint64_t window = in->window_open ? kBulkWindow : kFirstWindow;
    const std::uint64_t room = window - std::min<std::uint64_t>(window, in->parked.size());
    const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(room, bytes.size()));
    in->parked.insert(in->parked.end(), bytes.begin(),
                      bytes.begin() + static_cast<std::ptrdiff_t>(most));
    offer(*in);
    return most;
}

void FakeLink::finish(port::StreamId stream) {
    if (Incoming* in = find(stream); in != nullptr) in->ended = true;
    settle();
}

void FakeLink::reset(port::StreamId stream) {
    if (ins_.erase(stream.value()) != 0) emit(port::Aborted{.stream = stream});
}

void FakeLink::release(port::StreamId stream, port::SendOutcome outcome) {
    const auto found = outs_.find(stream.value());
    if (found == outs_.end()) return;
    read_again(*found->second.source);
    outs_.erase(found);
    emit(port::Released{.stream = stream, .outcome = outcome});
}

void FakeLink::go_down(const Error& reason) {
    if (down_) return;
    while (!outs_.empty()) {
        release(port::StreamId(outs_.begin()->first), port::SendOutcome::link_lost);
    }
    ins_.clear();
    down_ = true;
    emit(port::Down{.reason = reason});
}

void FakeLink::settle() {
    if (dropped_) go_down(Error(Errc::link_closed, "this side dropped the link"));
    for (auto at = ins_.begin(); at != ins_.end();) {
        Incoming& in = at->second;
        const port::StreamId stream(at->first);
        if (!in.refused) offer(in);
        if (in.refused) {
            emit(port::Aborted{.stream = stream});
        } else if (in.ended && in.sink != nullptr && in.parked.empty()) {
            emit(port::Finished{.stream = stream, .bytes = in.taken});
        } else {
            ++at;
            continue;
        }
        at = ins_.erase(at);
    }
    for (auto at = outs_.begin(); at != outs_.end();) {
        const auto& [number, out] = *at++;
        if (!out.cancelled) continue;
        release(port::StreamId(number),
                sent_whole ? port::SendOutcome::cancelled_late : port::SendOutcome::cancelled);
    }
}

std::optional<port::LinkEvent> FakeLink::poll_event() {
    settle();
    if (events_.empty()) return std::nullopt;
    port::LinkEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
}

std::uint64_t FakeLink::parked() const noexcept {
    std::uint64_t bytes = 0;
    for (const auto& [number, in] : ins_) bytes += in.parked.size();
    return bytes;
}

}  // namespace nexar::testing
