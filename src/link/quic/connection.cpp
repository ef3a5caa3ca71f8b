#include "link/quic/connection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "link/quic/connection_callbacks.hpp"
#include "link/quic/connection_crypto.hpp"
#include "link/quic/connection_errors.hpp"
#include "link/quic/native.hpp"

namespace nexar::quic {

namespace {

// Half-open connections of strangers end after this time, whatever they send.
constexpr Duration kHalfOpenLife = std::chrono::seconds(3);
// ngtcp2's default is for wide-area networks: a lost first packet would cost a second.
constexpr Duration kInitialRoundTrip = std::chrono::milliseconds(10);
// Short, because it delays the detection of a lost last packet (RFC 9002 6.2).
constexpr Duration kMaxAckDelay = std::chrono::milliseconds(1);

constexpr std::array<port::Lane, port::kLanes> kAllLanes = {port::Lane::control, port::Lane::rpc,
                                                            port::Lane::eager};

// Sizes to probe, largest first (RFC 8899): the limit of the interface, then those of common
// networks.
std::vector<std::uint16_t> probes_up_to(std::size_t largest) {
    std::vector<std::uint16_t> probes;
    if (largest > kLeastDatagram) probes.push_back(static_cast<std::uint16_t>(largest));
    constexpr std::array<std::uint16_t, 5> kCommon = {8952, 4052, 1452, 1392, 1280};
    for (const std::uint16_t size : kCommon) {
        if (size < largest) probes.push_back(size);
    }
    return probes;
}

ngtcp2_settings settings_for(Surroundings& around, const ConnectionStart& start,
                             std::span<const std::uint16_t> probes, Duration handshake_timeout) {
    ngtcp2_settings settings{};
    ngtcp2_settings_default(&settings);
    settings.initial_ts = native(start.now);
    settings.rand_ctx.native_handle = &around;
    settings.initial_rtt = native(kInitialRoundTrip);
    settings.handshake_timeout = native(handshake_timeout);
    settings.cc_algo = NGTCP2_CC_ALGO_CUBIC;
    settings.max_tx_udp_payload_size = std::max(start.largest_datagram, kLeastDatagram);
    settings.no_pmtud = probes.empty() ? 1 : 0;
    settings.pmtud_probes = probes.data();
    settings.pmtud_probeslen = probes.size();
    return settings;
}

ngtcp2_transport_params parameters_for(const LinkOptions& options) {
    ngtcp2_transport_params params{};
    ngtcp2_transport_params_default(&params);
    params.initial_max_data = options.connection_window;
    params.initial_max_stream_data_uni = options.first_window;
    params.initial_max_streams_uni = options.max_streams + port::kLanes;
    params.initial_max_streams_bidi = 0;
    params.max_idle_timeout = native(options.idle_timeout);
    params.max_ack_delay = native(kMaxAckDelay);
    // Each attempt to move the connection uses one, and while the path is cut the peer renews none.
    params.active_connection_id_limit = 8;
    params.max_datagram_frame_size = Outbox::kLargestPacket;
    return params;
}

}  // namespace

Connection::Connection(Surroundings& around, ConnectionStart&& start, bool dialed)
    : around_(&around),
      id_(start.id),
      options_(start.options),
      path_(start.path),
      largest_datagram_(start.largest_datagram),
      dialed_(dialed),
      joins_(start.joins),
      now_(start.now),
      lanes_{OutStream(port::Lane::control, around.pool()),
             OutStream(port::Lane::rpc, around.pool()),
             OutStream(port::Lane::eager, around.pool())},
      relayed_(options_.relayed_queue),
      idle_packets_(options_.idle_packets_per_second, options_.idle_packets_burst),
      resets_(options_.resets_per_second, options_.resets_burst) {
    // Windows only grow: a later one cannot be smaller than the first.
    NEXAR_ASSERT(options_.bulk_window >= options_.first_window);
    NEXAR_ASSERT(options_.lane_window >= options_.first_window);
}

Connection::~Connection() = default;

void Connection::ConnFree::operator()(ngtcp2_conn* conn) const noexcept {
    ngtcp2_conn_del(conn);
}

Result<void> Connection::start_tls(security::TlsOptions options) {
    options.role = dialed_ ? security::Role::client : security::Role::server;
    options.alpn = options_.protection == Protection::full ? kAlpn : kAlpnUnprotected;
    if (joins_) options.join_alpn = kAlpnJoin;
    NEXAR_TRY_VALUE(session, security::TlsSession::create(std::move(options)));
    tls_ = std::move(session);
    if (!CryptoCallbacks::bind(*this, dialed_)) {
        return Error(Errc::out_of_memory,
                     "there is not enough memory for the TLS session of a QUIC connection");
    }
    return {};
}

Result<std::unique_ptr<Connection>> Connection::dial(Surroundings& around, ConnectionStart start) {
    security::TlsOptions tls = std::move(start.tls);
    const auto probes = probes_up_to(start.largest_datagram);
    const auto settings = settings_for(around, start, probes, start.options.handshake_timeout);
    const auto params = parameters_for(start.options);
    std::unique_ptr<Connection> connection(new Connection(around, std::move(start), true));
    NEXAR_TRY(connection->start_tls(std::move(tls)));

    std::array<std::uint8_t, 16> random{};
    around.random_bytes(random);
    const ngtcp2_cid to = native(AnyCid(std::span<const std::uint8_t>(random)));
    const ngtcp2_cid from = native(AnyCid(around.new_cid(*connection)));
    const ngtcp2_path path = native(connection->path_);
    const ngtcp2_callbacks callbacks = ConnectionCallbacks::all();
    ngtcp2_conn* conn = nullptr;
    const int code =
        ngtcp2_conn_client_new(&conn, &to, &from, &path, NGTCP2_PROTO_VER_V1, &callbacks, &settings,
                               &params, nullptr, connection.get());
    if (code != 0) return connection->describe(code);
    connection->adopt(conn);
    return connection;
}

Result<std::unique_ptr<Connection>> Connection::accept(Surroundings& around, ConnectionStart start,
                                                       const ClientHelloPacket& first) {
    security::TlsOptions tls = std::move(start.tls);
    const auto probes = probes_up_to(start.largest_datagram);
    auto settings = settings_for(around, start, probes, kHalfOpenLife);
    auto params = parameters_for(start.options);
    std::unique_ptr<Connection> connection(new Connection(around, std::move(start), false));
    NEXAR_TRY(connection->start_tls(std::move(tls)));

    const LocalCid own = around.new_cid(*connection);
    const ResetToken token = around.reset_token(own);
    params.stateless_reset_token_present = 1;
    std::ranges::copy(token, std::begin(params.stateless_reset_token));
    params.original_dcid_present = 1;
    params.original_dcid = native(first.before_retry.value_or(first.to));
    if (first.before_retry) {
        params.retry_scid_present = 1;
        params.retry_scid = native(first.to);
        settings.token = native(first.token.data());
        settings.tokenlen = first.token.size();
        settings.token_type = NGTCP2_TOKEN_TYPE_RETRY;
    }
    const ngtcp2_cid to = native(first.from);
    const ngtcp2_cid from = native(AnyCid(own));
    const ngtcp2_path path = native(connection->path_);
    const ngtcp2_callbacks callbacks = ConnectionCallbacks::all();
    ngtcp2_conn* conn = nullptr;
    const int code = ngtcp2_conn_server_new(&conn, &to, &from, &path, first.version, &callbacks,
                                            &settings, &params, nullptr, connection.get());
    if (code != 0) return connection->describe(code);
    connection->adopt(conn);
    return connection;
}

void Connection::adopt(ngtcp2_conn* conn) {
    conn_.reset(conn);
    last_stamp_ = native(now_);
    heard_at_ = begun_at_ = now_;
    idle_limit_ = options_.idle_timeout;
    ngtcp2_conn_set_tls_native_handle(conn, tls_->native());
}

std::uint64_t Connection::stamp(TimePoint now) noexcept {
    now_ = std::max(now_, now);
    // ngtcp2 aborts the process if time goes back.
    last_stamp_ = std::max(last_stamp_, native(now));
    return last_stamp_;
}

bool Connection::can_wait(TimePoint now) const noexcept {
    return state_ == State::up && !dropped_ && ready_set_ == 0 && outs_.empty() &&
           datagrams_.empty() && relayed_.empty() && to_look_at_.empty() && deadline() > now;
}

TimePoint Connection::deadline() const noexcept {
    if (state_ == State::down) return gone_at_;
    const ngtcp2_tstamp expiry = ngtcp2_conn_get_expiry(conn_.get());
    TimePoint due = TimePoint::max();
    if (expiry < static_cast<ngtcp2_tstamp>(TimePoint::max().time_since_epoch().count())) {
        due = TimePoint(Duration(static_cast<Duration::rep>(expiry)));
    }
    if (state_ == State::up) due = std::min(due, refresh_due_);
    if (state_ == State::up && !probing_) due = std::min(due, probes_at_);
    if (linger_until_) due = std::min(due, *linger_until_);
    return std::min(due, silence_ends());
}

Result<void> Connection::update_keys(TimePoint now) {
    const int code = ngtcp2_conn_initiate_key_update(conn_.get(), stamp(now));
    if (code != 0) return describe(code);
    wake();
    return {};
}

void Connection::abandon(Error reason) {
    if (state_ != State::down) fail(now_, std::move(reason), Closing::silent);
    gone_at_ = now_;
}

void Connection::give_up() {
    if (state_ == State::handshaking) {
        fail(now_, Error(Errc::cancelled, "this side gave up the link"), Closing::say);
    }
}

void Connection::fail(TimePoint now, Error reason, Closing closing) {
    NEXAR_ASSERT(state_ != State::down);
    const bool polite = state_ == State::lingering || reason.code() == Errc::link_closed;
    const bool came_up = state_ != State::handshaking;
    if (closing == Closing::say) say_goodbye(now, polite ? kCloseDone : kCloseFailed, reason);
    state_ = State::down;
    // Late packets still get an answer. The time counts from the next write(), because a caller
    // that closes the link does not pass the time.
    gone_after_ = three_probe_timeouts();
    gone_at_ = TimePoint::max();
    release_all(port::SendOutcome::link_lost);
    port::Down down{.reason = std::move(reason)};
    if (!dropped_) down.rests = take_rests();
    if (came_up && !dropped_) take_lane_bytes(down);
    ins_.clear();
    lane_streams_ = {};
    lane_sinks_ = {};
    to_look_at_.clear();
    datagrams_.clear();
    relayed_.clear();
    parked_ = 0;
    if (!came_up) drop_handshake();
    around_->emit({.link = id_, .what = std::move(down)});
    wake();
}

std::vector<port::Rest> Connection::take_rests() {
    std::vector<port::Rest> rests;
    for (const auto& [number, stream] : ins_) {
        const bool waits = !stream->lane && stream->has_ended() && !stream->handled;
        if (!waits || stream->refused || stream->parked() == 0) continue;
        rests.push_back(
            {.stream = stream->id(), .offset = stream->taken(), .bytes = stream->take_parked()});
    }
    std::ranges::sort(rests, {}, &port::Rest::stream);
    return rests;
}

/// Keeps only the bytes of the last packet, which answers late packets, so that many refused
/// strangers do not occupy more memory.
void Connection::drop_handshake() noexcept {
    conn_.reset();
    binding_.reset();
    tls_.reset();
    goodbye_.shrink_to_fit();
}

void Connection::settle(OutStream& stream, port::SendOutcome outcome) {
    dequeue(stream);
    std::erase(to_cancel_, &stream);
    const port::StreamId stream_id = stream.id();
    outs_.erase(stream_id.value());
    around_->emit({.link = id_, .what = port::Released{.stream = stream_id, .outcome = outcome}});
}

void Connection::release_all(port::SendOutcome outcome) {
    std::vector<std::uint64_t> ids;
    ids.reserve(outs_.size());
    for (const auto& [number, stream] : outs_) ids.push_back(number);
    std::ranges::sort(ids);
    for (const std::uint64_t number : ids) settle(*outs_.at(number), outcome);
    for (const port::Lane lane : kAllLanes) dequeue(lanes_[static_cast<std::size_t>(lane)]);
}

std::uint64_t Connection::bytes_in_flight() const noexcept {
    ngtcp2_conn_info values{};
    ngtcp2_conn_get_conn_info(conn_.get(), &values);
    return values.bytes_in_flight;
}

Connection::Statistics Connection::statistics() const {
    ngtcp2_conn_info values{};
    ngtcp2_conn_get_conn_info(conn_.get(), &values);
    const std::size_t width = ngtcp2_conn_get_path_max_tx_udp_payload_size(conn_.get());
    return {.datagram_bytes = black_hole_.limited() ? kLeastDatagram : width,
            .round_trip = Duration(static_cast<Duration::rep>(values.smoothed_rtt)),
            .congestion_window = values.cwnd,
            .in_flight = values.bytes_in_flight,
            .parked = parked_,
            .key_updates = key_updates_,
            .path_changes = path_changes_,
            .black_holes = black_holes_};
}

port::ConstBytes Connection::peer_ca() const noexcept {
    const auto& ca = tls_->seen_ca();
    return ca ? port::ConstBytes(ca->der()) : port::ConstBytes{};
}

}  // namespace nexar::quic
