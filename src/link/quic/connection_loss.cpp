#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "link/quic/connection.hpp"
#include "link/quic/native.hpp"

namespace nexar::quic {

namespace {

// How long a peer may be too busy to answer.
constexpr Duration kSilence = std::chrono::milliseconds(300);

}  // namespace

std::size_t Connection::losses() const noexcept {
    std::size_t sum = 0;
    const auto add = [&](const OutStream& stream) {
        if (stream.quic_id < 0) return;
        sum += ngtcp2_conn_get_stream_loss_count(conn_.get(), stream.quic_id);
    };
    for (const OutStream& lane : lanes_) add(lane);
    for (const auto& [number, stream] : outs_) add(*stream);
    return sum;
}

void Connection::look_for_black_hole(TimePoint now) {
    const Duration patience =
        4 * Duration(static_cast<Duration::rep>(ngtcp2_conn_get_pto(conn_.get())));
    std::size_t most = 0;
    const auto look = [&](OutStream& stream) {
        if (stream.quic_id < 0) return;
        const auto losses = ngtcp2_conn_get_stream_loss_count(conn_.get(), stream.quic_id);
        if (std::exchange(stream.progress_seen, stream.progress_at) != stream.progress_at) {
            stream.losses_before = losses;
        } else if (now - stream.progress_at > patience) {
            most = std::max(most, losses - stream.losses_before);
        }
    };
    for (OutStream& lane : lanes_) look(lane);
    for (const auto& [number, stream] : outs_) look(*stream);
    // If all packets are lost, none is acknowledged, and then ngtcp2 does not report any as lost
    // either.
    const bool silent = now - answered_at_ > std::max(patience, kSilence);
    if (black_hole_.lost(now, most) || (silent && black_hole_.silent(now, losses()))) {
        ++black_holes_;
        NEXAR_LOG_INFO("the path to {} seems to drop datagrams of {} bytes; sending smaller ones",
                       path_.remote.text(),
                       ngtcp2_conn_get_path_max_tx_udp_payload_size(conn_.get()));
    }
}

}  // namespace nexar::quic
