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

/// Moves at once since the peer acknowledged something. Each takes two of the connection ids that
/// the peer has given us, and needs the second to come back.
constexpr unsigned kMostAtOnce = 2;

/// A validation that takes longer, apart from its probe timeouts, has ended.
constexpr Duration kLeastProof = std::chrono::milliseconds(200);

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
///
/// While packets in flight fill the congestion window, as after a cut, ngtcp2 sends nothing that
/// validates a path, at either end. Then the connection moves at once, which opens the windows of
/// both ends, and comes back if the peer does not answer. This end does not know the window of the
/// peer, so after a move that failed, it also moves at once.
void Connection::begin_move(TimePoint now) {
    const Address remote = wanted_remote_.value_or(path_.remote);
    wanted_remote_.reset();
    if (remote == path_.remote) {
        around_->emit({.link = id_, .what = port::PathChanged{remote}});
        return;
    }
    if (returns_) {
        around_->emit({.link = id_, .what = port::PathFailed{remote}});
        return;
    }
    const Path to{.local = local_for(remote), .remote = remote};
    const ngtcp2_path path = native(to);
    ngtcp2_conn_info values{};
    ngtcp2_conn_get_conn_info(conn_.get(), &values);
    const bool blocked = values.bytes_in_flight >= values.cwnd || moved_in_vain_;
    moved_at_once_ = blocked && at_once_ < kMostAtOnce;
    if (moved_at_once_) ++at_once_;
    // Both also end a move that has begun, and on_path() hears of it first.
    const auto move =
        moved_at_once_ ? ngtcp2_conn_initiate_immediate_migration : ngtcp2_conn_initiate_migration;
    if (move(conn_.get(), &path, stamp(now)) == 0) {
        tried_remote_ = remote;
    } else {
        around_->emit({.link = id_, .what = port::PathFailed{remote}});
    }
}

/// Goes back to the path from which the connection moved at once, without success. If the peer has
/// no unused connection id for us, tries again with the next packet.
void Connection::begin_return(TimePoint now) {
    const Path back{.local = other_name_of(path_.local), .remote = path_.remote};
    const ngtcp2_path path = native(back);
    if (ngtcp2_conn_initiate_immediate_migration(conn_.get(), &path, stamp(now)) != 0) return;
    path_ = back;
    returns_ = false;
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
    if (!dialed_) {  // the next packet of the peer seems to arrive on another path
        unproven_at_ = now;
        return;
    }
    const Address usual = local_for(path_.remote);
    const Path to{.local = path_.local == usual ? other_name_of(usual) : usual,
                  .remote = path_.remote};
    const ngtcp2_path path = native(to);
    // Fails if the peer has no unused connection id for us; then timers must do.
    if (ngtcp2_conn_initiate_immediate_migration(conn_.get(), &path, stamp(now)) == 0) path_ = to;
}

/// After a path validation that failed, ngtcp2 may use a path that it has not validated and does
/// not validate any more. Then it sends only three times as much as arrives (RFC 9000 8.1),
/// forever. A packet of the peer that seems to arrive on another path begins a new validation.
void Connection::prove_path(TimePoint now) {
    if (unproven_at_ == TimePoint::max()) return;
    if (now < unproven_at_ + kLeastProof + 3 * probe_timeout()) return;
    unproven_at_ = now;
    const Path current = from_native(*ngtcp2_conn_get_path(conn_.get()));
    if (current != path_) other_name_ = !other_name_;
}

Address Connection::name_of(const Address& local) const noexcept {
    return other_name_ ? other_name_of(local) : local;
}

/// `works`: the peer has proved that it can be reached on this path.
void Connection::on_path(const ngtcp2_path& path, bool works) {
    const Path tried = from_native(path);
    if (works) return use_path(tried);
    if (!dialed_) unproven_at_ = now_;
    if (tried_remote_ != tried.remote) return;
    tried_remote_.reset();
    moved_in_vain_ = true;
    returns_ = moved_at_once_;
    if (returns_) wake();
    around_->emit({.link = id_, .what = port::PathFailed{tried.remote}});
}

void Connection::use_path(const Path& path) {
    unproven_at_ = TimePoint::max();
    if (path == path_) return;
    const bool moved = path.remote != path_.remote;
    path_ = path;
    ++path_changes_;
    tried_remote_.reset();
    if (!moved) return;
    other_name_ = false;
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
