#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "link/quic/connection.hpp"
#include "link/quic/connection_turn.hpp"
#include "link/quic/native.hpp"

namespace nexar::quic {

namespace {

// The number of turns between two checks of the streams' losses.
constexpr std::uint64_t kTurnsPerLook = 64;
// After this time without lane messages, throughput matters more than the latency of the next one.
constexpr Duration kQuietAfter = std::chrono::milliseconds(10);
// Fewest bytes that are worth a packet of their own to let the peer begin earlier.
constexpr std::size_t kLeastPart = std::size_t{16} * 1024;
// Bytes that may be sent without asking the pacer.
constexpr std::size_t kUnpaced = std::size_t{4} * 1024;

/// Larger datagrams do not leave a host. Between its processes nothing needs pacing, and the first
/// messages would wait for tens of milliseconds: the round trip of the handshake is mostly
/// computation, and a probe of the MTU is several times as large as the first congestion window.
constexpr std::size_t kLargestOnWire = std::size_t{16} * 1024;

/// may_probe() does not trust a longer first round trip.
constexpr Duration kProbedRoundTrip = std::chrono::milliseconds(250);
constexpr Duration kProbesPause = std::chrono::seconds(1);
constexpr Duration kProbedAnyway = std::chrono::seconds(5);
// Pieces passed to ngtcp2 at once. A packet that needs more pieces is just shorter.
constexpr std::size_t kMaxPieces = 16;
// A turn that ends in the middle of a batch would make a system call for a few packets.
std::size_t whole_batches(std::size_t bytes, std::size_t packet_bytes) noexcept {
    const std::size_t batch = Outbox::batch_packets(packet_bytes) * packet_bytes;
    return std::max<std::size_t>(bytes / batch, 1) * batch;
}

}  // namespace

void Connection::open_waiting() {
    for (auto& waiting : unopened_) {
        while (!waiting.empty()) {
            OutStream& stream = *waiting.front();
            std::int64_t quic_id = -1;
            if (ngtcp2_conn_open_uni_stream(conn_.get(), &quic_id, &stream) != 0) return;
            waiting.pop_front();
            stream.quic_id = quic_id;
            enqueue(stream);
        }
    }
}

/// The classes that have bytes and the peer's credit for them.
link::ClassSet Connection::waiting_classes(std::uint64_t credit) const noexcept {
    link::ClassSet waiting = ready_set_;
    if (credit <= options_.control_reserve) waiting &= link::bit(link::WriteClass::control);
    return credit == 0 ? link::ClassSet{0} : waiting;
}

/// Those of them that may write in this turn.
link::ClassSet Connection::ready_classes(const Turn& turn, std::uint64_t credit) const noexcept {
    constexpr link::ClassSet kPayload = link::bit(link::WriteClass::critical) |
                                        link::bit(link::WriteClass::realtime) |
                                        link::bit(link::WriteClass::bulk);
    link::ClassSet ready = waiting_classes(credit);
    if (!turn.may_write_bulk()) ready &= static_cast<link::ClassSet>(~kPayload);
    return ready;
}

OutStream* Connection::next_stream(const Turn& turn, std::size_t& limit) {
    if (dropped_) return nullptr;  // by a source
    const std::uint64_t credit = ngtcp2_conn_get_max_data_left(conn_.get());
    const auto chosen = order_.next(ready_classes(turn, credit));
    if (!chosen) return nullptr;
    const std::uint64_t usable =
        *chosen == link::WriteClass::control ? credit : credit - options_.control_reserve;
    limit = static_cast<std::size_t>(std::min<std::uint64_t>(usable, Outbox::kLargestPacket));
    return ready_[static_cast<std::size_t>(*chosen)].front();
}

void Connection::account(Turn& turn, OutStream& stream, std::size_t bytes, bool with_end) {
    stream.wrote(bytes, with_end);
    const link::ClassSet ready = ready_classes(turn, options_.connection_window);
    order_.wrote(stream.write_class(), bytes, ready);
    if (relayed_.empty()) {
        share_.wrote_alone();
    } else {
        share_.wrote_own(bytes);
    }
    (stream.is_lane() ? turn.has_lane : turn.has_bulk) = true;
    auto& queue = ready_[static_cast<std::size_t>(stream.write_class())];
    if (!stream.ready()) {
        dequeue(stream);
    } else if (queue.size() > 1 && queue.front() == &stream) {
        queue.pop_front();
        queue.push_back(&stream);
    }
}

std::ptrdiff_t Connection::write_stream(Turn& turn, OutStream& stream, std::size_t limit) {
    std::array<port::ConstBytes, kMaxPieces> pieces;
    std::array<ngtcp2_vec, kMaxPieces> vectors;
    const std::size_t count = stream.gather(pieces, limit);
    std::size_t offered = 0;
    for (std::size_t i = 0; i < count; ++i) {
        // ngtcp2 only reads it.
        vectors[i] = {.base = const_cast<std::uint8_t*>(native(pieces[i].data())),
                      .len = pieces[i].size()};
        offered += pieces[i].size();
    }
    const bool last = stream.ends_after(offered);
    const std::uint32_t flags =
        NGTCP2_WRITE_STREAM_FLAG_MORE | (last ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0U);
    ngtcp2_ssize taken = -1;
    const auto size = ngtcp2_conn_writev_stream(
        conn_.get(), &turn.path.path, &turn.packet, native(turn.room.data()), turn.room.size(),
        &taken, flags, stream.quic_id, vectors.data(), count, turn.stamp);
    if (taken >= 0) {
        const auto bytes = static_cast<std::size_t>(taken);
        account(turn, stream, bytes, last && bytes == offered);
    }
    switch (size) {
        case NGTCP2_ERR_WRITE_MORE:
            turn.packet_open = true;
            return Turn::kGoOn;
        case NGTCP2_ERR_STREAM_DATA_BLOCKED:
            stream.window_spent = true;
            [[fallthrough]];
        case NGTCP2_ERR_STREAM_SHUT_WR:
        case NGTCP2_ERR_STREAM_NOT_FOUND:
            dequeue(stream);
            return Turn::kGoOn;
        default:
            break;
    }
    if (size < 0) library_error_ = static_cast<int>(size);
    if (size >= 0) turn.packet_open = false;
    return size < 0 ? Turn::kFailed : size;
}

std::ptrdiff_t Connection::finish_packet(Turn& turn) {
    const auto size = ngtcp2_conn_writev_stream(
        conn_.get(), &turn.path.path, &turn.packet, native(turn.room.data()), turn.room.size(),
        nullptr, NGTCP2_WRITE_STREAM_FLAG_NONE, -1, nullptr, 0, turn.stamp);
    turn.packet_open = false;
    if (size < 0) library_error_ = static_cast<int>(size);
    return size < 0 ? Turn::kFailed : size;
}

// Fills one packet: datagrams, then streams in the writer's order and relayed datagrams by turns,
// as many as fit.
std::ptrdiff_t Connection::write_packet(Turn& turn) {
    if (is_up()) {
        if (const auto size = write_datagrams(turn); size != Turn::kGoOn) return size;
        for (;;) {
            std::size_t limit = 0;
            OutStream* const stream = next_stream(turn, limit);
            const bool relayed = relayed_next(turn, stream != nullptr);
            if (stream == nullptr && !relayed) break;
            const auto size = relayed ? write_relayed(turn) : write_stream(turn, *stream, limit);
            if (size != Turn::kGoOn) return size;
        }
    }
    return finish_packet(turn);
}

Path Connection::path_of(const ngtcp2_path& path) const {
    const auto same = [](const ngtcp2_addr& theirs, const Address& ours) {
        return theirs.addrlen == ours.native_size() &&
               std::memcmp(theirs.addr, ours.native(), theirs.addrlen) == 0;
    };
    // Nearly always true; converting an address for each packet would show in a profile.
    if (same(path.remote, path_.remote) && same(path.local, path_.local)) return path_;
    return from_native(path);
}

bool Connection::may_send_bulk(TimePoint now) {
    ngtcp2_conn_info values{};
    ngtcp2_conn_get_conn_info(conn_.get(), &values);
    const auto time = [](ngtcp2_duration ns) { return Duration(static_cast<Duration::rep>(ns)); };
    round_trips_.saw(now, time(values.latest_rtt));
    // ngtcp2's congestion window grows without bound while nothing is lost, so it does not bound
    // the queues in which small messages wait.
    return values.bytes_in_flight < options_.bulk_in_flight ||
           !round_trips_.queued(time(values.smoothed_rtt));
}

/// A packet is encrypted completely before it is sent, and decrypted after it has arrived. To let
/// the two ends work at the same time, the first and the last packets of a write are smaller.
std::size_t Connection::part_limit() const noexcept {
    std::uint64_t waiting = 0;
    for (const auto& queue : ready_) {
        if (!queue.empty()) waiting += queue.front()->waiting_bytes();
    }
    const std::uint64_t part =
        std::max<std::uint64_t>(std::min(bytes_in_flight(), waiting / 2), kLeastPart);
    // A remainder that is much smaller is not worth a packet of its own either.
    return static_cast<std::size_t>(waiting < part + part / 2 ? Outbox::kLargestPacket : part);
}

/// True if a lane holds more than one packet of the size that every path carries.
bool Connection::lanes_are_busy() const noexcept {
    return std::ranges::any_of(
        lanes_, [](const OutStream& lane) { return lane.waiting_bytes() > kLeastDatagram; });
}

/// True if the path's MTU may be probed. False while the round trip looks long, as it does when one
/// end was stopped during the handshake: the pacer would spread a probe over several round trips,
/// and the next message would wait for seconds. A path that really is that long is probed when
/// there is something to send.
bool Connection::may_probe(TimePoint now) {
    const bool busy = is_up() && (!outs_.empty() || lanes_are_busy());
    if (!busy && now < probes_at_) return false;
    ngtcp2_conn_info info{};
    ngtcp2_conn_get_conn_info(conn_.get(), &info);
    if (info.smoothed_rtt <= native(kProbedRoundTrip)) return true;
    if (busy && now >= up_at_ + kProbedAnyway) return true;
    probes_at_ = now + kProbesPause;
    return false;
}

bool Connection::write_packets(TimePoint now, Outbox& out) {
    Turn turn;
    turn.stamp = stamp(now);
    turn.packet_bytes = ngtcp2_conn_get_path_max_tx_udp_payload_size(conn_.get());
    const bool bulk = may_send_bulk(now);
    const bool quiet = now - lanes_wrote_at_ > kQuietAfter;
    const std::size_t bulk_bytes = quiet ? options_.bulk_per_quiet_turn : options_.bulk_per_turn;
    if (bulk) turn.bulk_left = whole_batches(bulk_bytes, turn.packet_bytes);
    bool more = false;
    probing_ = probing_ || may_probe(now);
    relayed_.advance(now);
    while (out.has_room()) {
        turn.packet_bytes = ngtcp2_conn_get_path_max_tx_udp_payload_size(conn_.get());
        // A probe fills the congestion window several times over and would go first, but the first
        // messages of the two ends must not wait for it.
        std::size_t width =
            probing_ ? std::max(largest_datagram_, kLeastDatagram) : turn.packet_bytes;
        // Datagrams are not cut.
        const bool whole = out.crowded() || !datagrams_.empty() || !relayed_.empty();
        if (turn.packet_bytes > kLeastPart && !whole) width = std::min(width, part_limit());
        turn.room = out.room().first(std::min(width, black_hole_.limit(now)));
        ngtcp2_path_storage_zero(&turn.path);
        const auto size = write_packet(turn);
        if (size < 0) {
            fail_with(now, library_error_);
            return false;
        }
        if (size == 0 || dropped_) break;
        const auto bytes = static_cast<std::size_t>(size);
        // Only a probe is larger than the limit of the path.
        out.add(path_of(turn.path.path), static_cast<std::uint8_t>(turn.packet.ecn), bytes,
                bytes > turn.packet_bytes);
        if (std::exchange(turn.has_lane, false)) lanes_wrote_at_ = now;
        if (std::exchange(turn.has_bulk, false)) turn.bulk_left -= std::min(turn.bulk_left, bytes);
        turn.written += bytes;
        if (bytes >= kLeastPart) out.flush();
        more = turn.written >= 2 * bulk_bytes;
        if (more) break;
    }
    // A handshake is a few packets, and its round trip is mostly computation: pacing would only
    // prolong it. A single small message needs no pacing; the timer would only cause another call.
    unpaced_ += turn.written;
    const bool waits = ready_set_ != 0 || !relayed_.empty();
    if (is_up() && largest_datagram_ <= kLargestOnWire && (waits || unpaced_ > kUnpaced)) {
        ngtcp2_conn_update_pkt_tx_time(conn_.get(), turn.stamp);
        unpaced_ = 0;
    }
    // Bulk that waits for a queue to drain continues with the next acknowledgement.
    const bool bulk_waits = bulk && !turn.may_write_bulk() && waits;
    return more || bulk_waits || out.blocked();
}

bool Connection::write(TimePoint now, Outbox& out) {
    if (dropped_) end_dropped(now);
    if (state_ == State::down) {
        write_goodbye(now, out);
        return false;
    }
    // Expired timers reveal losses and, while something still gets through, so do packets.
    const bool expired = deadline() <= now;
    if (bytes_in_flight() == 0) answered_at_ = now;
    if (is_up() && (expired || ++turns_ % kTurnsPerLook == 0)) look_for_black_hole(now);
    if (expired && !survives(now)) {
        write_goodbye(now, out);
        return false;
    }
    if (is_up()) {
        release_given_up();
        if (dropped_) return false;
        if (returns_) begin_return(now);
        if (wanted_remote_) begin_move(now);
        if (now >= refresh_due_) {
            ++unheard_;
            wants_refresh_ = true;
        }
        if (wants_refresh_) begin_refresh(now);
        prove_path(now);
        open_waiting();
        say_farewell(now);
    }
    bool more = state_ != State::down && write_packets(now, out);
    if (dropped_) return false;
    if (asking_) end_probe();
    // The last datagram may have left with these packets.
    if (is_up() && say_farewell(now)) more = true;
    if (state_ == State::lingering && may_end(now)) {
        fail(now, Error(Errc::link_closed, "this side closed the link"), Closing::say);
    }
    if (state_ == State::down) write_goodbye(now, out);
    plan_refresh();
    return more && state_ != State::down;
}

}  // namespace nexar::quic
