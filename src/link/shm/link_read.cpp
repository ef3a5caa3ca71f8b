#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "link/shm/carrier.hpp"
#include "link/shm/link.hpp"

namespace nexar::shm {

namespace {

// Bounds of what one poll takes, so that others get their turn.
constexpr std::uint64_t kBytesPerPoll = std::uint64_t{256} * 1024;
constexpr int kRecordsPerPoll = 1024;
// The writer learns that there is room again when this much was read, and when nothing is left.
constexpr std::uint64_t kPublishStep = std::uint64_t{16} * 1024;
// A window is renewed when this part of it was consumed.
constexpr std::uint64_t kCreditDivisor = 4;

}  // namespace

void Link::receive(port::Lane lane, port::Sink& sink) {
    if (has_ended()) return;
    const auto index = static_cast<std::size_t>(lane);
    NEXAR_ASSERT(!lanes_in_[index].has_sink(), "the sink of a lane can be set only once");
    lanes_in_[index].attach(sink);
    lanes_to_look_at_ |= static_cast<std::uint8_t>(1U << index);
    touch();
}

void Link::receive(port::StreamId id, port::Sink& sink) {
    InStream* stream = find_in(id);
    if (stream == nullptr) return;
    NEXAR_ASSERT(!stream->has_sink(), "the sink of a stream can be set only once");
    stream->attach(sink);
    look_at(*stream);
}

void Link::open_window(port::StreamId id) {
    InStream* stream = find_in(id);
    if (stream == nullptr || std::exchange(stream->window_open, true)) return;
    granted_ += stream->limit - stream->taken();
    look_at(*stream);
}

void Link::wake_sink(port::StreamId id) {
    InStream* stream = find_in(id);
    if (stream == nullptr) return;
    stream->wake();
    look_at(*stream);
}

void Link::wake_sink(port::Lane lane) {
    if (has_ended()) return;
    const auto index = static_cast<std::size_t>(lane);
    lanes_in_[index].wake();
    lanes_to_look_at_ |= static_cast<std::uint8_t>(1U << index);
    touch();
}

void Link::refuse(port::StreamId id) {
    InStream* stream = find_in(id);
    if (stream == nullptr) return;
    stream->refused = true;
    look_at(*stream);
}

InStream* Link::find_in(port::StreamId id) noexcept {
    if (dropped_) return nullptr;
    const auto found = ins_.find(id.value());
    return found == ins_.end() || found->second->handled ? nullptr : found->second.get();
}

void Link::look_at(InStream& stream) {
    if (!std::exchange(stream.look_queued, true)) to_look_at_.push_back(stream.number);
    touch();
}

void Link::look_at_streams() {
    for (std::size_t i = 0; lanes_to_look_at_ != 0 && i < port::kLanes; ++i) {
        if ((lanes_to_look_at_ & (1U << i)) == 0) continue;
        lanes_to_look_at_ &= static_cast<std::uint8_t>(~(1U << i));
        lanes_in_[i].retry();
        if (dropped_) return;  // by the sink
        grant(lanes_in_[i], i);
    }
    if (to_look_at_.empty()) return;
    for (const std::uint64_t number : std::exchange(to_look_at_, {})) {
        const auto found = ins_.find(number);
        if (found == ins_.end()) continue;
        InStream& stream = *found->second;
        stream.look_queued = false;
        if (stream.handled) continue;
        if (stream.refused) {
            end_in(stream, stream.finished());
        } else {
            offer(stream);
        }
        if (dropped_) return;
    }
}

void Link::poll_idle() {
    if (reader_.read() != published_) {
        publish_taken();
        ring_if_asleep();
    }
    if (waits_for_ != 0 && reader_advanced()) touch();
}

bool Link::take_records() {
    const std::uint64_t most = reader_.read() + kBytesPerPoll;
    for (int i = 0; i < kRecordsPerPoll && reader_.read() < most; ++i) {
        const RecordHead head = reader_.head();
        if (head.word() == 0) break;
        if (head.bytes > max_content(reader_.size()) || head.kind == 0 ||
            head.kind > kLastRecordKind || head.zero != 0) {
            violated("wrote a record that is not valid");
            break;
        }
        take_record(head, reader_.content(head));
        if (dropped_) return true;  // by a sink
        if (failure_) break;
        reader_.skip(head);
        if (reader_.read() - published_ >= kPublishStep) publish_taken();
        if (peer_ended_) {
            end(peer_closed(), PeerProcess::alive);
            return true;
        }
        if (state_ == State::down) return true;  // by a message of the socket
    }
    if (end_if_failed()) return true;
    ring_if_asleep();
    if (waits_for_ != 0 && reader_advanced()) touch();
    return true;
}

void Link::take_record(RecordHead head, port::ConstBytes content) {
    const auto kind = static_cast<RecordKind>(head.kind);
    switch (kind) {
        case RecordKind::lane: {
            if (head.detail >= port::kLanes) return violated("wrote to a lane that does not exist");
            InLane& lane = lanes_in_[head.detail];
            if (content.size() > lane.limit - lane.arrived()) {
                return violated("wrote more to a lane than its window allows");
            }
            lane.arrive(content);
            return grant(lane, head.detail);
        }
        case RecordKind::stream:
            return take_stream_bytes(head.detail, content);
        case RecordKind::reset:
            if (content.size() != kNumberBytes) break;
            return take_reset(number_at(content.data()));
        case RecordKind::report: {
            StreamReport report;
            if (content.size() != sizeof report) break;
            std::memcpy(&report, content.data(), sizeof report);
            return on_report(head.detail, report);
        }
        case RecordKind::lane_report:
            if (content.size() != kNumberBytes) break;
            return on_lane_report(head.detail, number_at(content.data()));
        case RecordKind::datagram:
            if (content.size() > options_->max_datagram) break;
            return emit(port::DatagramArrived{.bytes = {content.begin(), content.end()}});
        case RecordKind::farewell:
            peer_parted_ = true;
            return touch();
        case RecordKind::look:
            carrier_->look_at_sockets_ = true;
            return;
        case RecordKind::goodbye:
            peer_ended_ = true;
            return;
    }
    violated("wrote a record of the wrong size");
}

void Link::take_stream_bytes(std::uint8_t detail, port::ConstBytes content) {
    if (content.size() < kNumberBytes || detail > kStreamEnds) {
        return violated("wrote a record of the wrong size");
    }
    const std::uint64_t number = number_at(content.data());
    const port::ConstBytes bytes = content.subspan(kNumberBytes);
    auto found = ins_.find(number);
    if (number == next_in_) {
        if (ins_.size() >= options_->max_streams) {
            return violated("opened more streams than allowed");
        }
        ++next_in_;
        found = ins_.emplace(number, std::make_unique<InStream>(number)).first;
        found->second->limit = options_->first_window;
        found->second->reported_limit = options_->first_window;
        emit(port::Opened{.stream = found->second->id()});
    } else if (number > next_in_) {
        return violated("opened a stream out of order");
    }
    // Bytes of a stream that this side refused: the peer did not know it yet.
    if (found == ins_.end() || found->second->handled) return;
    InStream& stream = *found->second;
    if (stream.ended) return violated("wrote to a stream after its end");
    if (bytes.size() > stream.limit - stream.arrived()) {
        return violated("wrote more to a stream than its window allows");
    }
    const std::uint64_t taken = stream.taken();
    if (stream.refused) return;
    stream.arrive(bytes);
    if (stream.window_open) granted_ -= stream.taken() - taken;
    if ((detail & kStreamEnds) != 0) {
        stream.ended = true;
        report_later(stream, kReportArrived);
        if (stream.finished()) return end_in(stream, true);
    }
    grant(stream);
}

void Link::take_reset(std::uint64_t number) {
    if (number >= next_in_) return violated("cancelled a stream that does not exist");
    const auto found = ins_.find(number);
    if (found == ins_.end() || found->second->handled) return;
    if (found->second->ended) return violated("cancelled a stream after its end");
    end_in(*found->second, false);
}

void Link::offer(InStream& stream) {
    const std::uint64_t taken = stream.taken();
    stream.retry();
    if (stream.window_open) granted_ -= stream.taken() - taken;
    if (stream.finished()) {
        end_in(stream, true);
    } else {
        grant(stream);
    }
}

void Link::end_in(InStream& stream, bool finished) {
    if (finished) {
        emit(port::Finished{.stream = stream.id(), .bytes = stream.taken()});
    } else {
        emit(port::Aborted{.stream = stream.id()});
    }
    if (stream.window_open) granted_ -= stream.limit - stream.taken();
    stream.handled = true;
    stream.drop_parked();
    if (!finished && stream.refused) {
        stream.report = 0;
        report_later(stream, kReportRefused | kReportRetired);
    } else {
        report_later(stream, kReportRetired);
    }
}

void Link::grant(InStream& stream) {
    if (!stream.window_open || stream.ended || stream.handled) return;
    const std::uint64_t window =
        granted_ < options_->window_budget ? options_->bulk_window : options_->least_window;
    const std::uint64_t limit = std::max(stream.limit, stream.taken() + window);
    granted_ += limit - stream.limit;
    stream.limit = limit;
    if (limit - stream.reported_limit >= window / kCreditDivisor) report_later(stream, 0);
}

void Link::grant(InLane& lane, std::size_t index) {
    const std::uint64_t owed = lane.taken() + options_->lane_window - lane.limit;
    if (owed < options_->lane_window / kCreditDivisor) return;
    lanes_to_report_ |= static_cast<std::uint8_t>(1U << index);
    touch();
}

void Link::report_later(InStream& stream, std::uint8_t detail) {
    stream.report |= detail;
    if (!std::exchange(stream.report_queued, true)) to_report_.push_back(stream.number);
    touch();
}

}  // namespace nexar::shm
