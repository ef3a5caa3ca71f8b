// How a connection moves from one network path to another (RFC 9000 9): between two addresses of a
// host, and between a direct path and a tunnel.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "link/quic/connection.hpp"
#include "link/quic/native.hpp"
#include "link/quic/tunnel_path.hpp"

namespace nexar::quic {

namespace {

/// A peer that has acknowledged nothing for this time and two round trips may be cut off.
constexpr Duration kAnswersWithin = std::chrono::milliseconds(50);
/// Three probe timeouts of a path whose round trip is unknown (kInitialRoundTrip).
constexpr Duration kLeastPathPatience = std::chrono::milliseconds(100);
/// Each of them doubles the time until the next probe of the old path.
constexpr unsigned kMostHurries = 3;
/// Timers that expire before the probe timer, which is the last of them.
constexpr int kTimersBefore = 3;
/// The clock must not go forward to the end of the connection, for example.
constexpr Duration kLongestSkip = std::chrono::seconds(5);

Address local_for(const Address& remote) noexcept {
    return remote.is_tunnel() ? tunnel_local() : Address::any(remote.is_v6());
}

/// Only its host part, if it has one, matters to a socket.
Address other_name_of(const Address& local) noexcept {
    if (local.is_tunnel()) return Address::tunnel({std::byte{1}});
    return local.with_port(local.port() ^ 1U);
}

}  // namespace

Result<void> Connection::migrate(TimePoint now, const Address& local) {
    if (!dialed_) {
        return Error(Errc::unsupported,
                     fmt::format("only the side that dialed can move a connection; {} dialed this "
                                 "one and moves it when its own address changes",
                                 path_.remote.text()));
    }
    const Path to{.local = local, .remote = path_.remote};
    const ngtcp2_path path = native(to);
    const int code = ngtcp2_conn_initiate_immediate_migration(conn_.get(), &path, stamp(now));
    if (code != 0) return describe(code);
    path_ = to;
    wake();
    return {};
}

void Connection::move_to(const Address& remote) {
    if (!dialed_ || !is_up() || dropped_) return;
    wanted_remote_ = remote;
    wake();
}

/// ngtcp2 probes the new path and moves the connection when the peer answers. It can move only to
/// another local address, and needs a connection id that the peer has not seen yet.
void Connection::begin_move(TimePoint now) {
    const Address remote = *std::exchange(wanted_remote_, {});
    if (remote == path_.remote) {
        around_->emit({.link = id_, .what = port::PathChanged{remote}});
        return;
    }
    const Path to{.local = local_for(remote), .remote = remote};
    const ngtcp2_path path = native(to);
    // This also ends a move that has begun, and on_path() hears of it first.
    if (ngtcp2_conn_initiate_migration(conn_.get(), &path, stamp(now)) == 0) {
        tried_remote_ = remote;
        other_path_waits_ = true;
    } else {
        around_->emit({.link = id_, .what = port::PathFailed{remote}});
    }
}

void Connection::refresh() {
    if (!is_up() || dropped_) return;
    wants_refresh_ = true;
    wake();
}

/// Moves the connection to the path that it has, under another name of its local end: sockets take
/// either, and QUIC takes it for another path. So the congestion window and the probe timer begin
/// anew, and both ends soon learn which packets were lost.
void Connection::begin_refresh(TimePoint now) {
    wants_refresh_ = false;
    if (tried_remote_) return;  // a move does the same
    refreshed_at_ = now;
    other_name_ = !other_name_;
    if (!dialed_) return;  // the next packet of the peer seems to arrive on another path
    const Address usual = local_for(path_.remote);
    const Path to{.local = path_.local == usual ? other_name_of(usual) : usual,
                  .remote = path_.remote};
    const ngtcp2_path path = native(to);
    // Fails if the peer has no unused connection id for us; then timers must do.
    if (ngtcp2_conn_initiate_immediate_migration(conn_.get(), &path, stamp(now)) == 0) path_ = to;
}

Address Connection::name_of(const Address& local) const noexcept {
    return other_name_ ? other_name_of(local) : local;
}

/// When a packet that validates another path must not wait for acknowledgements any longer, or,
/// after it was sent, when to look whether the peer has answered.
TimePoint Connection::hurries_at() const noexcept {
    if (!is_up() || hurries_ == kMostHurries) return TimePoint::max();
    if (!other_path_waits_ && !tried_remote_) return TimePoint::max();
    ngtcp2_conn_info values{};
    ngtcp2_conn_get_conn_info(conn_.get(), &values);
    if (values.bytes_in_flight < values.cwnd) return TimePoint::max();
    const Duration trip(static_cast<Duration::rep>(values.smoothed_rtt));
    const TimePoint due = answered_at_ + kAnswersWithin + 2 * trip;
    if (other_path_waits_) return due;
    // ngtcp2 waits for three probe timeouts (RFC 9000 8.2.4), of the new path or the old one.
    const Duration patience = std::max(three_probe_timeouts(), kLeastPathPatience);
    return std::max(due, hurried_at_ + patience + kAnswersWithin);
}

/// While packets in flight fill the congestion window, ngtcp2 sends nothing that validates a path,
/// except when its probe timer expires. After a cut nothing is acknowledged, and the timer is about
/// as long as the cut was (RFC 9002 6.2.1). So the clock of ngtcp2 goes forward to that timer,
/// before which it may have another one.
bool Connection::hurry(TimePoint now, Outbox& out) {
    const bool sends = other_path_waits_;
    bool more = false;
    ++hurries_;
    hurried_at_ = now;
    for (int timers = 0; timers < kTimersBefore; ++timers) {
        const std::uint64_t stamped = stamp(now);
        const std::uint64_t expiry = ngtcp2_conn_get_expiry(conn_.get());
        if (expiry > stamped + native(kLongestSkip)) break;
        if (expiry > stamped) skipped_ += expiry - stamped;
        const int code = ngtcp2_conn_handle_expiry(conn_.get(), stamp(now));
        if (code != 0) {
            fail_with(now, code);
            return false;
        }
        more = write_packets(now, out);
        const bool done = sends ? !other_path_waits_ : !tried_remote_;
        if (done || !is_up() || dropped_) break;
    }
    other_path_waits_ = false;
    return more;
}

/// `works`: the peer has proved that it can be reached on this path.
void Connection::on_path(const ngtcp2_path& path, bool works) {
    const Path tried = from_native(path);
    if (works) return use_path(tried);
    if (tried_remote_ != tried.remote) return;
    tried_remote_.reset();
    around_->emit({.link = id_, .what = port::PathFailed{tried.remote}});
}

void Connection::use_path(const Path& path) {
    if (path == path_) return;
    const bool moved = path.remote != path_.remote;
    path_ = path;
    ++path_changes_;
    tried_remote_.reset();
    if (!moved) return;
    // What was learned about the old path says nothing about this one.
    round_trips_ = {};
    black_hole_ = {};
    around_->emit({.link = id_, .what = port::PathChanged{path.remote}});
}

/// False if the handshake arrived in the envelopes of another node than the one whose certificate
/// it shows.
bool Connection::comes_from_peer() const noexcept {
    return !path_.remote.is_tunnel() || path_.remote.tunnel_end() == peer_.node.bytes();
}

}  // namespace nexar::quic
