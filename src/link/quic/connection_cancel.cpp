#include <utility>

#include "link/quic/connection.hpp"
#include "link/quic/connection_errors.hpp"
#include "link/quic/native.hpp"

// Streams that this side cancels end at once, without the peer.
namespace nexar::quic {

void Connection::cancel(port::StreamId stream_id) {
    const auto found = outs_.find(stream_id.value());
    if (found == outs_.end() || found->second->outcome) return;
    found->second->outcome = port::SendOutcome::cancelled;
    to_cancel_.push_back(found->second.get());
    wake();
}

void Connection::cancel_waiting() {
    for (OutStream* stream : std::exchange(to_cancel_, {})) {
        const bool sent = stream->end_written();
        if (stream->quic_id >= 0) {
            // From here on ngtcp2 does not read the stream's memory: it drops pending
            // retransmissions, and the frames of packets that are lost later. So the release need
            // not wait for the peer to acknowledge the reset, which a dead peer never does.
            ngtcp2_conn_shutdown_stream_write(conn_.get(), 0, stream->quic_id, kStreamGivenUp);
            ngtcp2_conn_set_stream_user_data(conn_.get(), stream->quic_id, nullptr);
        }
        settle(*stream, sent ? port::SendOutcome::cancelled_late : port::SendOutcome::cancelled);
    }
}

void Connection::release_given_up() {
    if (dropped_) end_dropped(now_);
    if (!is_up()) return;
    look_at_streams();
    if (!dropped_) cancel_waiting();
}

}  // namespace nexar::quic
