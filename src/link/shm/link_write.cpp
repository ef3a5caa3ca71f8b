#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "link/shm/carrier.hpp"
#include "link/shm/link.hpp"

namespace nexar::shm {

namespace {

// Bounds the bytes that one flush writes, so that others get their turn.
constexpr std::size_t kBytesPerFlush = std::size_t{256} * 1024;
constexpr std::size_t kPieceOverhead = 64;
// Smaller pieces of a longer stream are not worth a record: wait for more room.
constexpr std::size_t kLeastPiece = std::size_t{8} * 1024;
// Streams wait until this part of the ring has become free: turns for less cost more than they
// move.
constexpr std::uint64_t kRoomDivisor = 8;
constexpr link::ClassSet kLaneClasses = (1U << port::kLanes) - 1;
// No honest window gets near it, and sums of a few of them do not overflow.
constexpr std::uint64_t kMaxLimit = std::uint64_t{1} << 62U;

}  // namespace

void Link::put(RecordKind kind, std::uint8_t detail, std::size_t bytes) noexcept {
    writer_.commit({.bytes = static_cast<std::uint32_t>(bytes),
                    .kind = static_cast<std::uint8_t>(kind),
                    .detail = detail});
    to_tell_ |= kWantsArrivals;
}

bool Link::write(port::Lane lane, std::span<const port::ConstBytes> pieces) {
    if (has_ended()) return false;
    const auto index = static_cast<std::size_t>(lane);
    OutLane& out = lanes_out_[index];
    std::size_t total = 0;
    for (const port::ConstBytes piece : pieces) total += piece.size();
    if (total == 0) return true;
    // Several records let the peer begin with the first while this side copies the next one.
    const std::size_t records = 1 + (total - 1) / options_->chunk_bytes;
    if (!out.queue.empty() || total > max_content(writer_.size()) || total > out.window() ||
        !writer_.has_room(total + (records - 1) * 2 * kHeadBytes)) {
        return write_queued(index, pieces, total);
    }
    out.sent += total;
    std::size_t left = std::min(total, options_->chunk_bytes);  // of the current record
    std::byte* place = writer_.content();
    std::size_t filled = 0;
    for (port::ConstBytes piece : pieces) {
        while (!piece.empty()) {
            const std::size_t bytes = std::min(piece.size(), left - filled);
            std::memcpy(place + filled, piece.data(), bytes);
            piece = piece.subspan(bytes);
            filled += bytes;
            if (filled < left) continue;
            put(RecordKind::lane, static_cast<std::uint8_t>(index), filled);
            total -= filled;
            left = std::min(total, options_->chunk_bytes);
            place = writer_.content();
            filled = 0;
        }
    }
    carrier_->set_bell(*this);
    return true;
}

bool Link::write_queued(std::size_t index, std::span<const port::ConstBytes> pieces,
                        std::size_t total) {
    OutLane& out = lanes_out_[index];
    NEXAR_ASSERT(total <= options_->lane_queue,
                 "a write larger than the queue of a lane never fits");
    touch();
    if (out.queue.size() + total > options_->lane_queue) {
        out.full = true;
        return false;
    }
    for (const port::ConstBytes piece : pieces) out.queue.append(piece);
    return true;
}

port::StreamId Link::send(port::Source& source, const port::StreamOptions& options) {
    const port::StreamId id(next_out_++);
    if (dropped_ && !is_down()) {
        emit(port::Released{.stream = id, .outcome = port::SendOutcome::link_lost});
        return id;
    }
    if (state_ == State::down) {
        carrier_->emit_before_down(
            {.link = start_.id,
             .what = port::Released{.stream = id, .outcome = port::SendOutcome::link_lost}});
        return id;
    }
    auto stream = std::make_unique<OutStream>(id, source, options, options_->first_window);
    unopened_[static_cast<std::size_t>(options.priority)].push_back(stream.get());
    outs_.emplace(id.value(), std::move(stream));
    touch();
    return id;
}

void Link::wake_source(port::StreamId stream) {
    const auto found = outs_.find(stream.value());
    if (found == outs_.end() || dropped_) return;
    found->second->source_pending = false;
    enqueue(*found->second);
    touch();
}

void Link::cancel(port::StreamId stream) {
    const auto found = outs_.find(stream.value());
    if (found == outs_.end() || std::exchange(found->second->cancelled, true)) return;
    to_cancel_.push_back(stream.value());
    touch();
}

bool Link::send_datagram(port::ConstBytes bytes) {
    if (!is_up() || bytes.size() > options_->max_datagram ||
        !writer_.has_room(bytes.size(), writer_.size() / options_->lane_share)) {
        return false;
    }
    if (!bytes.empty()) std::memcpy(writer_.content(), bytes.data(), bytes.size());
    put(RecordKind::datagram, 0, bytes.size());
    touch();
    return true;
}

std::size_t Link::max_datagram() const noexcept {
    return options_->max_datagram;
}

void Link::flush(TimePoint now) {
    if (dropped_) {
        if (!is_down())
            end(Error(Errc::link_closed, "this side dropped the link"), PeerProcess::alive);
        return;
    }
    if (is_up()) {
        waits_for_ = 0;
        more_to_write_ = false;
        look_at_streams();
        if (dropped_) return;
        cancel_waiting();
        open_waiting();
        write_resets();
        write_reports();
        if (look_due_ && writer_.has_room(0)) {
            look_due_ = false;
            put(RecordKind::look, 0, 0);
        }
        write_pieces();
        if (dropped_) return;
        say_farewell(now);
        if (end_if_failed()) return;
        if (state_ == State::lingering && peer_parted_ && nothing_unsent()) {
            end(Error(Errc::link_closed, "this side closed the link"), PeerProcess::alive);
            return;
        }
        const bool closing = state_ == State::lingering || peer_parted_;
        if (look_due_ || (closing && !writer_.all_read())) wait_for_reader(1);
        waits_since_ = writer_.read();
        ring_if_asleep();
        if (more_to_write_) touch();
    }
    on_time(now);
    if (state_ != State::down) rearm();
}

void Link::open_waiting() {
    for (auto& waiting : unopened_) {
        while (!waiting.empty() && active_ < options_->max_streams) {
            OutStream& stream = *waiting.front();
            waiting.pop_front();
            stream.active = true;
            ++active_;
            enqueue(stream);
        }
    }
}

void Link::cancel_waiting() {
    for (const std::uint64_t id : std::exchange(to_cancel_, {})) {
        const auto found = outs_.find(id);
        if (found == outs_.end()) continue;
        OutStream& stream = *found->second;
        const bool sent = stream.end_written;
        if (stream.number && !sent) to_reset_.push_back(*stream.number);
        settle(stream, sent ? port::SendOutcome::cancelled_late : port::SendOutcome::cancelled);
    }
}

void Link::write_resets() {
    while (!to_reset_.empty()) {
        if (!writer_.has_room(kNumberBytes)) {
            wait_for_reader(1);
            return;
        }
        put_number(writer_.content(), to_reset_.back());
        to_reset_.pop_back();
        put(RecordKind::reset, 0, kNumberBytes);
    }
}

void Link::write_reports() {
    for (std::size_t i = 0; lanes_to_report_ != 0 && i < port::kLanes; ++i) {
        if ((lanes_to_report_ & (1U << i)) == 0) continue;
        if (!writer_.has_room(kNumberBytes)) {
            wait_for_reader(1);
            return;
        }
        lanes_to_report_ &= static_cast<std::uint8_t>(~(1U << i));
        lanes_in_[i].limit = lanes_in_[i].taken() + options_->lane_window;
        put_number(writer_.content(), lanes_in_[i].limit);
        put(RecordKind::lane_report, static_cast<std::uint8_t>(i), kNumberBytes);
    }
    std::size_t written = 0;
    for (const std::uint64_t number : to_report_) {
        if (!writer_.has_room(sizeof(StreamReport))) {
            wait_for_reader(1);
            break;
        }
        ++written;
        InStream& stream = *ins_.at(number);
        stream.report_queued = false;
        stream.reported_limit = stream.limit;
        const StreamReport report{.number = number, .limit = stream.limit};
        std::memcpy(writer_.content(), &report, sizeof report);
        put(RecordKind::report, std::exchange(stream.report, 0), sizeof report);
        if (stream.handled) ins_.erase(number);
    }
    to_report_.erase(to_report_.begin(), to_report_.begin() + static_cast<std::ptrdiff_t>(written));
}

link::ClassSet Link::ready_classes() const noexcept {
    unsigned ready = 0;
    for (std::size_t i = 0; i < port::kLanes; ++i) {
        if (!lanes_out_[i].queue.empty() && lanes_out_[i].window() != 0) ready |= 1U << i;
    }
    for (std::size_t i = 0; i < port::kPriorities; ++i) {
        if (!queues_[i].empty()) ready |= 1U << (port::kLanes + i);
    }
    return static_cast<link::ClassSet>(ready);
}

void Link::write_pieces() {
    std::size_t budget = kBytesPerFlush;
    auto allowed = static_cast<link::ClassSet>(~0U);
    while (!dropped_) {  // a source may do that
        const auto ready = static_cast<link::ClassSet>(ready_classes() & allowed);
        const auto chosen = order_.next(ready);
        if (!chosen) return;
        if (budget == 0) {
            more_to_write_ = true;
            return;
        }
        const auto index = static_cast<std::size_t>(*chosen);
        std::size_t bytes = 0;
        if (index < port::kLanes) {
            bytes = write_lane(index);
            if (bytes == 0) {
                wait_for_reader(1);
                return;
            }
        } else {
            auto& queue = queues_[index - port::kLanes];
            OutStream& stream = *queue.front();
            const std::uint64_t before = writer_.written();
            if (stream.ready()) bytes = write_stream(stream);
            if (!stream.ready()) {
                dequeue(stream);
            } else if (writer_.written() == before && !stream.source_pending) {
                // No room for streams; lanes may use what is left.
                wait_for_reader(writer_.size() / kRoomDivisor);
                allowed = kLaneClasses;
            } else if (queue.size() > 1) {
                queue.pop_front();
                queue.push_back(&stream);
            }
        }
        order_.wrote(*chosen, bytes, ready);
        budget -= std::min(budget, bytes + kPieceOverhead);
    }
}

std::size_t Link::write_lane(std::size_t index) {
    OutLane& out = lanes_out_[index];
    std::size_t bytes = std::min(out.queue.size(), options_->chunk_bytes);
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, out.window()));
    if (!writer_.has_room(bytes)) bytes = std::min(bytes, writer_.room());
    if (bytes == 0) return 0;
    std::memcpy(writer_.content(), out.queue.view().data(), bytes);
    out.queue.drop(bytes);
    out.sent += bytes;
    put(RecordKind::lane, static_cast<std::uint8_t>(index), bytes);
    if (out.full && out.queue.size() <= options_->lane_queue / 2) {
        out.full = false;
        emit(port::Writable{.lane = static_cast<port::Lane>(index)});
    }
    return bytes;
}

std::size_t Link::write_stream(OutStream& stream) {
    const std::size_t reserve = writer_.size() / options_->lane_share;
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(stream.sendable(), options_->chunk_bytes));
    if (!writer_.has_room(kNumberBytes + std::min(wanted, kLeastPiece), reserve)) return 0;
    const std::size_t bytes = std::min(wanted, writer_.room(reserve) - kNumberBytes);
    std::byte* const place = writer_.content();
    const std::size_t copied = stream.copy_to(place + kNumberBytes, bytes);
    const bool ends = stream.complete();
    if (copied == 0 && !ends) return 0;
    if (!stream.number) {
        stream.number = next_number_++;
        numbered_.emplace(*stream.number, &stream);
    }
    put_number(place, *stream.number);
    stream.end_written = ends;
    put(RecordKind::stream, ends ? kStreamEnds : 0, kNumberBytes + copied);
    return copied;
}

void Link::enqueue(OutStream& stream) {
    if (stream.queued || !stream.active || !stream.ready()) return;
    stream.queued = true;
    queues_[static_cast<std::size_t>(stream.write_class()) - port::kLanes].push_back(&stream);
    touch();
}

void Link::dequeue(OutStream& stream) {
    if (!std::exchange(stream.queued, false)) return;
    std::erase(queues_[static_cast<std::size_t>(stream.write_class()) - port::kLanes], &stream);
}

void Link::settle(OutStream& stream, port::SendOutcome outcome) {
    dequeue(stream);
    if (stream.number) {
        if (const auto found = numbered_.find(*stream.number); found != numbered_.end()) {
            found->second = nullptr;
        }
    } else if (stream.active) {
        --active_;
    } else {
        std::erase(unopened_[static_cast<std::size_t>(stream.write_class()) - port::kLanes],
                   &stream);
    }
    const port::StreamId id = stream.id();
    outs_.erase(id.value());
    emit(port::Released{.stream = id, .outcome = outcome});
}

void Link::on_report(std::uint8_t detail, const StreamReport& report) {
    const auto found = numbered_.find(report.number);
    if (found == numbered_.end() || detail > kReportDetails || report.limit > kMaxLimit) {
        violated("reports about a stream that does not exist");
        return;
    }
    OutStream* const stream = found->second;
    if (stream != nullptr) {
        if ((detail & kReportRefused) != 0) {
            settle(*stream, port::SendOutcome::refused);
        } else if ((detail & kReportArrived) != 0 && stream->end_written) {
            settle(*stream, port::SendOutcome::delivered);
        } else if (detail != 0) {
            violated("ended a stream that is not complete");
            return;
        } else {
            stream->accept_up_to(report.limit);
            enqueue(*stream);
        }
    }
    if ((detail & kReportRetired) == 0) return;
    numbered_.erase(report.number);
    --active_;
    touch();
}

void Link::on_lane_report(std::uint8_t lane, std::uint64_t limit) {
    if (lane >= port::kLanes || limit > kMaxLimit) {
        violated("reports about a lane that does not exist");
        return;
    }
    OutLane& out = lanes_out_[lane];
    out.limit = std::max(out.limit, limit);
    if (!out.queue.empty()) touch();
}

}  // namespace nexar::shm
