// Datagrams: those of this node, which go first, and those that it relays, which share the link
// with lanes and streams.

#include <algorithm>
#include <vector>

#include "link/quic/connection.hpp"
#include "link/quic/connection_turn.hpp"
#include "link/quic/native.hpp"

namespace nexar::quic {

namespace {

/// Of a packet with one datagram: the short header with the longest id, the tag, and the header of
/// the frame, RFC 9221.
constexpr std::size_t kOverhead = 1 + AnyCid::kMaxBytes + 4 + 16 + 1 + 8;

}  // namespace

bool Connection::send_datagram(port::ConstBytes bytes) {
    if (!is_up() || dropped_ || bytes.size() > max_datagram() ||
        datagrams_.size() >= options_.datagram_queue) {
        return false;
    }
    datagrams_.emplace_back(bytes.begin(), bytes.end());
    wake();
    return true;
}

bool Connection::send_relayed(port::ConstBytes bytes) {
    if (state_ != State::up || dropped_ || bytes.size() > max_datagram()) return false;
    if (bytes.size() > relayed_.room(max_datagram())) return false;
    relayed_.push(bytes);
    wake();
    return true;
}

std::size_t Connection::relayed_room() const noexcept {
    return state_ == State::up && !dropped_ ? relayed_.room(max_datagram()) : 0;
}

std::size_t Connection::max_datagram() const noexcept {
    const std::size_t packet = ngtcp2_conn_get_path_max_tx_udp_payload_size(conn_.get());
    return (black_hole_.limited() ? std::min(packet, kLeastDatagram) : packet) - kOverhead;
}

/// Adds a datagram to the packet. `done`: it is in the packet, or the path has become too narrow
/// for it, so that it is lost.
std::ptrdiff_t Connection::put_datagram(Turn& turn, port::ConstBytes bytes, bool& done) {
    done = bytes.size() + kOverhead > std::min(turn.room.size(), turn.packet_bytes);
    if (done) return Turn::kGoOn;
    int accepted = 0;
    // ngtcp2 only reads it, and asserts that no piece is empty.
    const ngtcp2_vec piece{.base = const_cast<std::uint8_t*>(native(bytes.data())),
                           .len = bytes.size()};
    const auto size = ngtcp2_conn_writev_datagram(
        conn_.get(), &turn.path.path, &turn.packet, native(turn.room.data()), turn.room.size(),
        &accepted, NGTCP2_WRITE_DATAGRAM_FLAG_MORE, 0, &piece, bytes.empty() ? 0 : 1, turn.stamp);
    done = accepted != 0;
    if (size == NGTCP2_ERR_WRITE_MORE) {
        turn.packet_open = true;
        return Turn::kGoOn;
    }
    if (size == NGTCP2_ERR_INVALID_STATE || size == NGTCP2_ERR_INVALID_ARGUMENT) {
        done = true;  // the peer does not take it
        return Turn::kGoOn;
    }
    if (size < 0) library_error_ = static_cast<int>(size);
    if (size >= 0) turn.packet_open = false;
    return size < 0 ? Turn::kFailed : size;
}

std::ptrdiff_t Connection::write_datagrams(Turn& turn) {
    while (!datagrams_.empty()) {
        bool done = false;
        const auto size = put_datagram(turn, datagrams_.front(), done);
        if (done) datagrams_.pop_front();
        if (size != Turn::kGoOn) return size;
    }
    return Turn::kGoOn;
}

/// `own_is_ready`: a lane or a stream may write. Without them, relayed datagrams are limited like
/// payload; lanes are not, so neither is what shares the link with them.
bool Connection::relayed_next(const Turn& turn, bool own_is_ready) const noexcept {
    if (relayed_.empty() || dropped_) return false;
    return own_is_ready ? share_.forwarded_next() : turn.may_write_bulk();
}

std::ptrdiff_t Connection::write_relayed(Turn& turn) {
    bool done = false;
    const auto size = put_datagram(turn, relayed_.front(), done);
    if (!done) return size;
    const std::size_t bytes = relayed_.take(now_).size();
    turn.has_bulk = true;
    if (waiting_classes(ngtcp2_conn_get_max_data_left(conn_.get())) == 0) {
        share_.wrote_alone();
    } else {
        share_.wrote_forwarded(bytes);
    }
    return size;
}

}  // namespace nexar::quic
