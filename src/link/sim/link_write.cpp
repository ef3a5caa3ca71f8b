#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "link/sim/carrier.hpp"
#include "link/sim/fabric.hpp"
#include "link/sim/link.hpp"

namespace nexar::sim {

namespace {

// Bounds the bytes that one flush sends, so that others get their turn.
constexpr std::size_t kBytesPerFlush = std::size_t{256} * 1024;
// Datagrams that wait while a node does not read, as in a socket's buffer.
constexpr std::size_t kMostWaitingDatagrams = 1024;
// How many times the delay a reordered datagram may be late.
constexpr int kReorderFactor = 4;

}  // namespace

bool Link::write(port::Lane lane, std::span<const port::ConstBytes> pieces) {
    if (state_ == State::down || dropped_) return false;
    const auto index = static_cast<std::size_t>(lane);
    Pipe& pipe = *lanes_out_[index];
    std::size_t total = 0;
    for (const port::ConstBytes piece : pieces) total += piece.size();
    NEXAR_ASSERT(total <= options_->lane_queue,
                 "a write larger than the queue of a lane never fits");
    if (pipe.out.held(pipe.bytes.end()) + total > options_->lane_queue) {
        lane_full_[index] = true;
        touch();
        return false;
    }
    for (const port::ConstBytes piece : pieces) pipe.bytes.append(piece);
    enqueue(pipe);
    touch();
    return true;
}

port::StreamId Link::send(port::Source& source, const port::StreamOptions& options) {
    const port::StreamId id(next_out_++);
    if (dropped_ && state_ != State::down) {
        emit(port::Released{.stream = id, .outcome = port::SendOutcome::link_lost});
        return id;
    }
    if (state_ == State::down) {
        carrier_->emit_before_down(
            {.link = start_.id,
             .what = port::Released{.stream = id, .outcome = port::SendOutcome::link_lost}});
        return id;
    }
    auto pipe = std::make_shared<Pipe>(id, source, options, options_->check_sources);
    unopened_[static_cast<std::size_t>(options.priority)].push_back(pipe.get());
    outs_.emplace(id.value(), std::move(pipe));
    touch();
    return id;
}

void Link::wake_source(port::StreamId stream) {
    const auto found = outs_.find(stream.value());
    if (found == outs_.end() || dropped_) return;
    found->second->out.source_pending = false;
    enqueue(*found->second);
    touch();
}

void Link::cancel(port::StreamId stream) {
    const auto found = outs_.find(stream.value());
    if (found == outs_.end() || found->second->out.outcome) return;
    found->second->out.outcome = port::SendOutcome::cancelled;
    to_cancel_.push_back(found->second);
    touch();
}

bool Link::send_datagram(port::ConstBytes bytes) {
    if (!is_up() || dropped_ || bytes.size() > max_datagram() ||
        datagrams_.size() >= options_->datagram_queue) {
        return false;
    }
    datagrams_.emplace_back(bytes.begin(), bytes.end());
    touch();
    return true;
}

std::size_t Link::max_datagram() const noexcept {
    return options_->max_datagram;
}

bool Link::send_relayed(port::ConstBytes bytes) {
    if (state_ != State::up || dropped_ || bytes.size() > max_datagram()) return false;
    if (bytes.size() > relayed_.room(max_datagram())) return false;
    relayed_.push(bytes);
    touch();
    return true;
}

std::size_t Link::relayed_room() const noexcept {
    return state_ == State::up && !dropped_ ? relayed_.room(max_datagram()) : 0;
}

void Link::enqueue(Pipe& pipe) {
    if (pipe.out.queued || !pipe.out.opened || !pipe.out.ready(pipe.bytes.end())) return;
    pipe.out.queued = true;
    queues_[static_cast<std::size_t>(pipe.out.write_class())].push_back(&pipe);
    queue_set_ |= link::bit(pipe.out.write_class());
}

void Link::dequeue(Pipe& pipe) {
    if (!std::exchange(pipe.out.queued, false)) return;
    auto& queue = queues_[static_cast<std::size_t>(pipe.out.write_class())];
    std::erase(queue, &pipe);
    if (queue.empty()) {
        queue_set_ &= static_cast<link::ClassSet>(~link::bit(pipe.out.write_class()));
    }
}

void Link::settle(Pipe& pipe, port::SendOutcome outcome) {
    if (std::exchange(pipe.out.settled, true)) return;
    dequeue(pipe);
    pipe.out.check_source();
    pipe.out.forget_source();
    const port::StreamId id = pipe.out.id();
    outs_.erase(id.value());
    emit(port::Released{.stream = id, .outcome = outcome});
}

void Link::on_progress(const Signal& signal) {
    Pipe& pipe = *signal.pipe;
    if (signal.retired) ++retired_;
    if (pipe.out.settled) return;
    pipe.out.acknowledge(signal.acknowledged, signal.limit);
    if (!pipe.lane) {
        if (signal.all) {
            settle(pipe, port::SendOutcome::delivered);
        } else {
            enqueue(pipe);
        }
        return;
    }
    const auto index = static_cast<std::size_t>(*pipe.lane);
    pipe.drop_done();
    enqueue(pipe);
    if (lane_full_[index] && pipe.out.held(pipe.bytes.end()) <= options_->lane_queue / 2) {
        lane_full_[index] = false;
        emit(port::Writable{.lane = *pipe.lane});
    }
}

void Link::on_stop(const Signal& signal) {
    ++retired_;
    settle(*signal.pipe, port::SendOutcome::refused);
}

void Link::open_waiting() {
    if (outs_.empty()) return;
    for (auto& waiting : unopened_) {
        while (!waiting.empty() && opened_ - retired_ < options_->max_streams) {
            Pipe& pipe = *waiting.front();
            waiting.pop_front();
            pipe.out.opened = true;
            pipe.out.set_limit(options_->first_window);
            // Numbered as in QUIC, so that the numbers of the two sides differ.
            pipe.in_id = port::StreamId(4 * (opened_++ + port::kLanes) + 2);
            pipe.receiver = peer_;
            if (peer_->state_ == State::down) {
                pipe.in.handled = true;
            } else {
                peer_->ins_.emplace(pipe.in_id.value(), pipe.shared_from_this());
            }
            enqueue(pipe);
        }
    }
}

void Link::cancel_waiting() {
    if (to_cancel_.empty()) return;
    for (const PipePtr& pipe : std::exchange(to_cancel_, {})) {
        if (pipe->out.settled) continue;
        if (!pipe->out.opened) {
            for (auto& waiting : unopened_) std::erase(waiting, pipe.get());
        } else if (!severed_) {
            // A reset may overtake the bytes before it, which then never arrive.
            if (!pipe->in.handled && world_->random().chance(0.5)) pipe->segments.clear();
            put(world_->now(), *pipe, {.end = pipe->out.sent(), .resets = true});
        }
        // During a partition bytes in flight may arrive, but the reset does not.
        settle(*pipe, pipe->out.end_sent() ? port::SendOutcome::cancelled_late
                                           : port::SendOutcome::cancelled);
    }
}

void Link::write_datagrams(TimePoint now) {
    for (std::vector<std::byte>& bytes : datagrams_) send_on(now, now, std::move(bytes));
    datagrams_.clear();
}

void Link::send_on(TimePoint now, TimePoint leaves, std::vector<std::byte> bytes) {
    if (weather_.datagram_loss > 0 && world_->random().chance(weather_.datagram_loss)) return;
    if (weather_.datagram_duplicate > 0 && world_->random().chance(weather_.datagram_duplicate)) {
        put_datagram(now, leaves, bytes);
    }
    put_datagram(now, leaves, std::move(bytes));
}

/// The host of a killed node answers with a refusal, which travels back like everything else.
void Link::refuse_datagram(TimePoint now) {
    if (!options_->killed_nodes_refuse || refused_at_ != TimePoint::max()) return;
    if (fabric_->cut(start_.peer.node, carrier_->identity().node) ||
        fabric_->cut(carrier_->identity().node, start_.peer.node)) {
        return;
    }
    refused_at_ = now + late() + peer_->late();
    rearm();
}

void Link::put_datagram(TimePoint now, TimePoint leaves, std::vector<std::byte> bytes) {
    if (!peer_->carrier_->alive()) return refuse_datagram(now);
    if (severed_ || peer_->state_ == State::down ||
        peer_->datagrams_in_.size() >= kMostWaitingDatagrams) {
        return;
    }
    Duration on_the_way = late();
    if (weather_.datagram_reorder > 0 && world_->random().chance(weather_.datagram_reorder)) {
        const Duration most = kReorderFactor * (weather_.delay + weather_.jitter);
        on_the_way += Duration(static_cast<Duration::rep>(
            world_->random().below(static_cast<std::uint64_t>(most.count()) + 1)));
    }
    auto& heap = peer_->datagrams_in_;
    heap.push_back(
        {.due = leaves + on_the_way, .number = datagram_numbers_++, .bytes = std::move(bytes)});
    std::ranges::push_heap(heap, later);
    peer_->rearm();
}

std::size_t Link::piece_size(std::uint64_t sendable) {
    std::uint64_t size = std::min<std::uint64_t>(sendable, weather_.largest_piece);
    if (break_at_bytes_) size = std::min(size, *break_at_bytes_ - bytes_sent_);
    if (size > 1 && weather_.cuts > 0 && world_->random().chance(weather_.cuts)) {
        size = 1 + world_->random().below(size);
    }
    return static_cast<std::size_t>(size);
}

void Link::put(TimePoint now, Pipe& pipe, Pipe::Segment segment) {
    // The receiver would drop it if it has finished the stream.
    if (severed_ || pipe.in.handled) return;
    segment.due = std::max(pipe.last_due, std::max(now, free_at_) + late());
    pipe.last_due = segment.due;
    pipe.segments.push_back(segment);
    if (pipe.segments.size() == 1) pipe.receiver->arm(pipe);
}

std::size_t Link::write_piece(TimePoint now, Pipe& pipe) {
    const std::size_t wanted = piece_size(pipe.out.sendable(pipe.bytes.end()));
    const std::size_t bytes = wanted == 0 ? 0 : pipe.out.send(wanted, pipe.bytes);
    bool ends = pipe.out.end_due();
    if (ends && bytes != 0 && weather_.cuts > 0) ends = !world_->random().chance(weather_.cuts);
    if (ends) pipe.out.send_end();
    bytes_sent_ += bytes;
    occupy(now, bytes);
    if (bytes != 0 || ends) put(now, pipe, {.end = pipe.out.sent(), .ends = ends});
    return bytes;
}

/// The rate of the weather lets nothing else leave until these bytes have left.
void Link::occupy(TimePoint now, std::size_t bytes) {
    if (weather_.bytes_per_second == 0) return;
    const auto ns = bytes * std::uint64_t{1'000'000'000} / weather_.bytes_per_second;
    free_at_ = std::max(free_at_, now) + Duration(static_cast<Duration::rep>(ns));
}

/// Lanes and streams in the writer's order, and relayed datagrams, by turns.
void Link::write_payload(TimePoint now) {
    std::size_t budget = kBytesPerFlush;
    relayed_.advance(now);
    while (has_payload() && free_at_ <= now && budget != 0 && !severed_ && !dropped_) {
        const bool own = queue_set_ != 0;
        if (!relayed_.empty() && (!own || share_.forwarded_next())) {
            budget -= std::min(budget, write_relayed(now) + kPieceOverhead);
        } else {
            write_next_piece(now, budget);
        }
    }
}

std::size_t Link::write_relayed(TimePoint now) {
    std::vector<std::byte> datagram = relayed_.take(now);
    const std::size_t bytes = datagram.size();
    if (queue_set_ == 0) {
        share_.wrote_alone();
    } else {
        share_.wrote_forwarded(bytes);
    }
    occupy(now, bytes);
    send_on(now, std::max(now, free_at_), std::move(datagram));
    return bytes;
}

void Link::write_next_piece(TimePoint now, std::size_t& budget) {
    const auto chosen = order_.next(queue_set_);
    if (!chosen) return;
    auto& queue = queues_[static_cast<std::size_t>(*chosen)];
    Pipe& pipe = *queue.front();
    const std::size_t bytes = write_piece(now, pipe);
    order_.wrote(*chosen, bytes, queue_set_);
    if (relayed_.empty()) {
        share_.wrote_alone();
    } else {
        share_.wrote_own(bytes);
    }
    budget -= std::min(budget, bytes + kPieceOverhead);
    if (!pipe.out.ready(pipe.bytes.end())) {
        dequeue(pipe);
    } else if (queue.size() > 1) {
        std::ranges::rotate(queue, queue.begin() + 1);
    }
    if (break_at_bytes_ && bytes_sent_ >= *break_at_bytes_) {
        break_at_bytes_.reset();
        fabric_->break_wire(*this, Fabric::kBreakSpread);
    }
}

}  // namespace nexar::sim
