// What callers give to a connection: messages on lanes, and streams. They wait here until
// connection_write.cpp puts them into packets.

#include <algorithm>
#include <memory>
#include <vector>

#include "link/quic/connection.hpp"
#include "link/quic/native.hpp"

namespace nexar::quic {

bool Connection::write(port::Lane lane, std::span<const port::ConstBytes> pieces) {
    const auto index = static_cast<std::size_t>(lane);
    OutStream& stream = lanes_[index];
    if (state_ == State::down || dropped_) return false;
    if (stream.ending()) return true;  // one of the two closes the link
    std::size_t total = 0;
    for (const port::ConstBytes piece : pieces) total += piece.size();
    if (stream.queued_bytes() + total > options_.lane_queue || !stream.append(pieces)) {
        lane_full_[index] = true;
        return false;
    }
    enqueue(stream);
    wake();
    return true;
}

port::StreamId Connection::send(port::Source& source, const port::StreamOptions& options) {
    const port::StreamId stream_id(next_stream_++);
    if (state_ == State::down || dropped_) {
        around_->emit(
            {.link = id_,
             .what = port::Released{.stream = stream_id, .outcome = port::SendOutcome::link_lost}});
        return stream_id;
    }
    auto stream = std::make_unique<OutStream>(stream_id, source, options, around_->pool());
    unopened_[static_cast<std::size_t>(stream->write_class())].push_back(stream.get());
    outs_.emplace(stream_id.value(), std::move(stream));
    wake();
    return stream_id;
}

void Connection::wake_source(port::StreamId stream_id) {
    const auto found = outs_.find(stream_id.value());
    if (found == outs_.end() || dropped_) return;
    found->second->source_pending = false;
    enqueue(*found->second);
    wake();
}

void Connection::enqueue(OutStream& stream) {
    if (stream.queued || stream.quic_id < 0 || stream.window_spent || !stream.ready()) return;
    stream.queued = true;
    ready_[static_cast<std::size_t>(stream.write_class())].push_back(&stream);
    ready_set_ |= link::bit(stream.write_class());
}

void Connection::dequeue(OutStream& stream) {
    const auto index = static_cast<std::size_t>(stream.write_class());
    if (stream.queued) std::erase(ready_[index], &stream);
    if (ready_[index].empty())
        ready_set_ &= static_cast<link::ClassSet>(~link::bit(stream.write_class()));
    if (stream.quic_id < 0 && !stream.is_lane()) std::erase(unopened_[index], &stream);
    stream.queued = false;
}

}  // namespace nexar::quic
