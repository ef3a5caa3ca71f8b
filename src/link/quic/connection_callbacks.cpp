#include "link/quic/connection_callbacks.hpp"

#include <fmt/format.h>

#include <utility>

#include "base/assert.hpp"
#include "link/quic/connection_crypto.hpp"
#include "link/quic/native.hpp"

namespace nexar::quic {

namespace {

Connection& of(void* user) noexcept {
    return *static_cast<Connection*>(user);
}

port::ConstBytes bytes_of(const std::uint8_t* bytes, std::size_t size) noexcept {
    return std::as_bytes(std::span(bytes, size));
}

}  // namespace

ngtcp2_callbacks ConnectionCallbacks::all() noexcept {
    ngtcp2_callbacks callbacks{};
    CryptoCallbacks::fill(callbacks);
    callbacks.handshake_completed = on_handshake_completed;
    callbacks.handshake_confirmed = on_handshake_confirmed;
    callbacks.recv_stream_data = on_stream_data;
    callbacks.acked_stream_data_offset = on_acknowledged;
    callbacks.stream_open = on_stream_open;
    callbacks.stream_close = on_stream_close;
    callbacks.stream_reset = on_stream_reset;
    callbacks.extend_max_stream_data = on_stream_window;
    callbacks.extend_max_local_streams_uni = on_stream_limit;
    callbacks.recv_datagram = on_datagram;
    callbacks.rand = on_random;
    callbacks.get_new_connection_id = on_new_cid;
    callbacks.remove_connection_id = on_drop_cid;
    callbacks.dcid_status = on_peer_cid;
    callbacks.path_validation = on_path_validation;
    callbacks.recv_stateless_reset = on_stateless_reset;
    callbacks.get_path_challenge_data = on_path_challenge;
    return callbacks;
}

int ConnectionCallbacks::on_handshake_completed(ngtcp2_conn* /*conn*/, void* user) {
    Connection& connection = of(user);
    connection.useful_ = true;
    NEXAR_ASSERT(connection.tls_->peer().has_value() != connection.tls_->with_joiner());
    // TLS completes at the client before the server has checked the client's certificate, so the
    // client waits for the server's confirmation.
    if (!connection.dialed_) connection.on_up();
    return 0;
}

int ConnectionCallbacks::on_handshake_confirmed(ngtcp2_conn* /*conn*/, void* user) {
    Connection& connection = of(user);
    connection.useful_ = true;
    if (connection.dialed_) connection.on_up();
    return 0;
}

int ConnectionCallbacks::on_stream_data(ngtcp2_conn* /*conn*/, std::uint32_t flags,
                                        std::int64_t /*stream_id*/, std::uint64_t /*offset*/,
                                        const std::uint8_t* bytes, std::size_t size, void* user,
                                        void* stream_user) {
    Connection& connection = of(user);
    const bool ended = (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0;
    connection.useful_ = connection.useful_ || size != 0 || ended;
    auto* stream = static_cast<InStream*>(stream_user);
    if (stream == nullptr) return 0;
    return connection.on_stream_data(*stream, bytes_of(bytes, size), ended)
               ? 0
               : NGTCP2_ERR_CALLBACK_FAILURE;
}

int ConnectionCallbacks::on_acknowledged(ngtcp2_conn* /*conn*/, std::int64_t /*stream_id*/,
                                         std::uint64_t offset, std::uint64_t size, void* user,
                                         void* stream_user) {
    Connection& connection = of(user);
    connection.useful_ = true;
    if (auto* stream = static_cast<OutStream*>(stream_user); stream != nullptr) {
        stream->acknowledged(offset + size);
        connection.on_acknowledged(*stream);
    }
    return 0;
}

int ConnectionCallbacks::on_stream_open(ngtcp2_conn* /*conn*/, std::int64_t stream_id, void* user) {
    of(user).on_stream_opened(stream_id);
    return 0;
}

int ConnectionCallbacks::on_stream_close(ngtcp2_conn* conn, std::uint32_t flags,
                                         std::int64_t stream_id, std::uint64_t /*code*/, void* user,
                                         void* stream_user) {
    Connection& connection = of(user);
    connection.useful_ = true;
    if (stream_user == nullptr) return 0;
    const bool reset = (flags & NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET) != 0;
    if (ngtcp2_conn_is_local_stream(conn, stream_id) != 0) {
        return connection.on_out_closed(*static_cast<OutStream*>(stream_user), reset)
                   ? 0
                   : NGTCP2_ERR_CALLBACK_FAILURE;
    }
    return connection.on_in_closed(*static_cast<InStream*>(stream_user), reset)
               ? 0
               : NGTCP2_ERR_CALLBACK_FAILURE;
}

int ConnectionCallbacks::on_stream_reset(ngtcp2_conn* /*conn*/, std::int64_t /*stream_id*/,
                                         std::uint64_t /*final_size*/, std::uint64_t /*code*/,
                                         void* user, void* stream_user) {
    auto* stream = static_cast<InStream*>(stream_user);
    return of(user).on_reset(stream) ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

int ConnectionCallbacks::on_stream_window(ngtcp2_conn* /*conn*/, std::int64_t /*stream_id*/,
                                          std::uint64_t /*most*/, void* user, void* stream_user) {
    if (auto* stream = static_cast<OutStream*>(stream_user); stream != nullptr) {
        Connection& connection = of(user);
        // Credit in proportion to the bytes sent is an answer. The peer could send any amount of
        // other credit at no cost.
        const bool answers =
            std::exchange(stream->credited, stream->written()) != stream->written();
        connection.useful_ = connection.useful_ || answers;
        stream->window_spent = false;
        connection.enqueue(*stream);
    }
    return 0;
}

int ConnectionCallbacks::on_stream_limit(ngtcp2_conn* /*conn*/, std::uint64_t /*most*/,
                                         void* user) {
    of(user).wake();
    return 0;
}

int ConnectionCallbacks::on_datagram(ngtcp2_conn* /*conn*/, std::uint32_t /*flags*/,
                                     const std::uint8_t* bytes, std::size_t size, void* user) {
    of(user).useful_ = true;
    of(user).on_datagram(bytes_of(bytes, size));
    return 0;
}

int ConnectionCallbacks::on_new_cid(ngtcp2_conn* /*conn*/, ngtcp2_cid* cid, std::uint8_t* token,
                                    std::size_t size, void* user) {
    Connection& connection = of(user);
    NEXAR_ASSERT(size == LocalCid::kBytes);
    const LocalCid fresh = connection.around_->new_cid(connection);
    const ResetToken reset = connection.around_->reset_token(fresh);
    ngtcp2_cid_init(cid, fresh.bytes.data(), fresh.bytes.size());
    std::ranges::copy(reset, token);
    return 0;
}

int ConnectionCallbacks::on_drop_cid(ngtcp2_conn* /*conn*/, const ngtcp2_cid* cid, void* user) {
    LocalCid local;
    NEXAR_ASSERT(cid->datalen == local.bytes.size());
    std::copy_n(cid->data, local.bytes.size(), local.bytes.begin());
    of(user).around_->drop_cid(local);
    return 0;
}

int ConnectionCallbacks::on_peer_cid(ngtcp2_conn* /*conn*/, ngtcp2_connection_id_status_type type,
                                     std::uint64_t /*sequence*/, const ngtcp2_cid* /*cid*/,
                                     const std::uint8_t* token, void* user) {
    if (token == nullptr) return 0;
    Connection& connection = of(user);
    ResetToken expected{};
    std::copy_n(token, expected.size(), expected.begin());
    if (type == NGTCP2_CONNECTION_ID_STATUS_TYPE_ACTIVATE) {
        connection.around_->expect_reset(connection, expected);
    } else {
        connection.around_->expect_no_reset(connection, expected);
    }
    return 0;
}

int ConnectionCallbacks::on_path_validation(ngtcp2_conn* /*conn*/, std::uint32_t /*flags*/,
                                            const ngtcp2_path* path, const ngtcp2_path* /*old*/,
                                            ngtcp2_path_validation_result result, void* user) {
    of(user).on_path(*path, result == NGTCP2_PATH_VALIDATION_RESULT_SUCCESS);
    return 0;
}

int ConnectionCallbacks::on_stateless_reset(ngtcp2_conn* /*conn*/,
                                            const ngtcp2_pkt_stateless_reset* /*reset*/,
                                            void* user) {
    Connection& connection = of(user);
    connection.callback_failure_ = Error(
        Errc::link_closed, fmt::format("{} no longer knows this link, because it was restarted",
                                       connection.remote().text()));
    return 0;
}

int ConnectionCallbacks::on_path_challenge(ngtcp2_conn* /*conn*/, std::uint8_t* bytes, void* user) {
    of(user).around_->random_bytes({bytes, NGTCP2_PATH_CHALLENGE_DATALEN});
    return 0;
}

void ConnectionCallbacks::on_random(std::uint8_t* out, std::size_t size,
                                    const ngtcp2_rand_ctx* context) {
    static_cast<Surroundings*>(context->native_handle)->random_bytes({out, size});
}

}  // namespace nexar::quic
