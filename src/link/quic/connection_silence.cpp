#include <fmt/format.h>

#include <algorithm>

#include "link/quic/connection.hpp"
#include "link/quic/native.hpp"

// Detects a peer that disappeared: nothing arrives for the idle timeout, or the peer's host reports
// that no process listens there.
namespace nexar::quic {

void Connection::begin_to_listen() noexcept {
    heard_at_ = now_;
    idle_limit_ = options_.idle_timeout;
    const auto* theirs = ngtcp2_conn_get_remote_transport_params(conn_.get());
    if (theirs != nullptr && theirs->max_idle_timeout != 0) {
        idle_limit_ =
            std::min(idle_limit_, Duration(static_cast<Duration::rep>(std::min<ngtcp2_duration>(
                                      theirs->max_idle_timeout, native(Duration::max())))));
    }
}

void Connection::heard(TimePoint now) noexcept {
    heard_at_ = now;
    refusals_.heard();
}

/// ngtcp2 restarts its idle timer with the first packet that it sends after a silence (RFC 9000
/// 10.1), so a keep-alive prolongs it. Our timeout counts from the last packet that arrived.
TimePoint Connection::silence_ends() const noexcept {
    TimePoint due = TimePoint::max();
    if (is_up()) due = heard_at_ + idle_limit_;
    // For ngtcp2 a handshake ends when TLS completes here; for us, when the server has confirmed
    // it.
    if (!is_up() && dialed_) due = begun_at_ + options_.handshake_timeout;
    if (const auto probe = refusals_.due()) due = std::min(due, *probe);
    return due;
}

bool Connection::survives(TimePoint now) {
    if (refusals_.dead(now)) {
        fail(now,
             Error(Errc::timed_out,
                   fmt::format("no process listens at {}: its host refuses our packets, and "
                               "nothing was heard from it for {} ms; the process has ended or "
                               "never started",
                               path_.remote.text(), Refusals::kPatience.count() / 1'000'000)),
             Closing::silent);
        return false;
    }
    int code = ngtcp2_conn_handle_expiry(conn_.get(), stamp(now));
    if (code == 0 && is_up() && now >= heard_at_ + idle_limit_) code = NGTCP2_ERR_IDLE_CLOSE;
    if (code == 0 && !is_up() && dialed_ && now >= begun_at_ + options_.handshake_timeout) {
        code = NGTCP2_ERR_HANDSHAKE_TIMEOUT;
    }
    if (code != 0) {
        fail_with(now, code);
        return false;
    }
    if (const auto probe = refusals_.due(); probe && now >= *probe) start_probe(now);
    return true;
}

/// When a keep-alive is due, ngtcp2 adds a PING to a packet that would otherwise need no answer.
/// During a handshake every packet needs an answer, and ngtcp2 retransmits it itself.
void Connection::start_probe(TimePoint now) {
    refusals_.probed(now);
    if (!is_up()) return;
    asking_ = true;
    ngtcp2_conn_set_keep_alive_timeout(conn_.get(), 1);
}

void Connection::end_probe() {
    asking_ = false;
    ngtcp2_conn_set_keep_alive_timeout(conn_.get(), native(options_.keep_alive));
}

void Connection::refused(TimePoint now, std::span<const std::byte> quoted) {
    if (state_ == State::down) return;
    const auto target = decode_target(quoted);
    if (target) {
        // Only an observer of our packets knows the peer's connection id.
        const ngtcp2_cid* to = ngtcp2_conn_get_dcid(conn_.get());
        const std::span<const std::uint8_t> expected(to->data, to->datalen);
        if (!std::ranges::equal(target->to.span(), expected)) return;
    }
    refusals_.refused(now, target.has_value());
    wake();
}

void Connection::make_room(TimePoint now) {
    if (state_ != State::handshaking) return;
    close_reason_ = "too many handshakes at once";
    fail_with(now, NGTCP2_ERR_HANDSHAKE_TIMEOUT);
}

}  // namespace nexar::quic
