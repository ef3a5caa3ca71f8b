#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "link/quic/connection.hpp"
#include "link/quic/native.hpp"

// Detects a peer that disappeared: nothing arrives for the idle timeout, or the peer's host reports
// that no process listens there.
namespace nexar::quic {

namespace {

/// A live peer answers a probe within this time and a few round trips.
constexpr Duration kClosingPatience = std::chrono::milliseconds(10);

/// Peers acknowledge packets much faster. A link that loses many of them takes longer now and then.
constexpr Duration kAnswerPatience = std::chrono::milliseconds(1500);

/// A link without acknowledgements is asked to answer after this time, unless its probe timeout is
/// longer, and then again and again.
constexpr Duration kRefreshAfter = std::chrono::milliseconds(500);
constexpr Duration kRefreshEvery = std::chrono::milliseconds(250);

/// Refreshes without an acknowledgement in between, while nothing arrives either. Each takes a
/// connection id, which the peer replaces only when it hears of it.
constexpr unsigned kMostUnheard = 3;

}  // namespace

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
    if (const auto end = closing_ends()) due = std::min(due, *end);
    return due;
}

std::optional<TimePoint> Connection::closing_ends() const noexcept {
    if (state_ != State::lingering) return std::nullopt;
    // The probe timeout would be too long: on a busy machine it grows to 30 ms on one host.
    return refusals_.dead_at_if_closing(kClosingPatience + 4 * round_trips_.least());
}

bool Connection::survives(TimePoint now) {
    if (const auto end = closing_ends(); end && now >= *end) {
        fail(now,
             Error(Errc::link_closed,
                   fmt::format("this side closed the link; no process listens at {} any more",
                               path_.remote.text())),
             Closing::silent);
        return false;
    }
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

/// After a cut, a sender that has filled its congestion window waits for its probe timer, which has
/// doubled until it was as long as the cut (RFC 9002 6.2.1). The peer's packets show earlier that
/// the path works again.
void Connection::look_for_stall(TimePoint now) {
    const Duration silence = now - answered_at_;
    const bool waits = is_up() && silence > kRefreshAfter && bytes_in_flight() > 0;
    const bool stalled = waits && silence > kAnswerPatience;
    if (waits && now >= refreshed_at_ + kRefreshEvery && silence > 3 * probe_timeout()) refresh();
    if (std::exchange(stalled_, stalled) != stalled) {
        around_->emit({.link = id_, .what = port::Stalled{stalled}});
    }
}

/// A path that loses many packets may lose all probes, and the time until the next one doubles. The
/// peer may have nothing to send that would show that the path works: members that are not
/// neighbours exchange no heartbeats. So the dialer also refreshes while nothing arrives, each time
/// after twice as long.
void Connection::plan_refresh() noexcept {
    const bool waits = dialed_ && state_ == State::up && bytes_in_flight() > 0;
    refresh_due_ = TimePoint::max();
    if (!waits || unheard_ >= kMostUnheard) return;
    refresh_due_ = answered_at_ + std::max(kRefreshAfter, 3 * probe_timeout()) * (1U << unheard_);
}

/// Without its back-off.
Duration Connection::probe_timeout() const noexcept {
    ngtcp2_conn_info values{};
    ngtcp2_conn_get_conn_info(conn_.get(), &values);
    return Duration(static_cast<Duration::rep>(values.smoothed_rtt + 4 * values.rttvar));
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

bool Connection::refused(TimePoint now, std::span<const std::byte> quoted) {
    if (state_ == State::down || dropped_) return false;
    const auto target = decode_target(quoted);
    if (target) {
        // Only an observer of our packets knows the peer's connection id.
        const ngtcp2_cid* to = ngtcp2_conn_get_dcid(conn_.get());
        const std::span<const std::uint8_t> expected(to->data, to->datalen);
        if (!std::ranges::equal(target->to.span(), expected)) return false;
    }
    refusals_.refused(now, target.has_value(), state_ == State::lingering);
    wake();
    return true;
}

void Connection::report_refusal(TimePoint now) {
    if (!is_up() || dropped_ || now < refusal_due_) return;
    refusal_due_ = now + port::kRefusedInterval;
    around_->emit({.link = id_, .what = port::PeerRefused{}});
}

void Connection::make_room(TimePoint now) {
    if (state_ != State::handshaking) return;
    close_reason_ = "too many handshakes at once";
    fail_with(now, NGTCP2_ERR_HANDSHAKE_TIMEOUT);
}

}  // namespace nexar::quic
