#pragma once

#include <ngtcp2/ngtcp2.h>

#include "link/quic/connection.hpp"

namespace nexar::quic {

/// The callbacks of ngtcp2. Each finds the connection or stream and calls its method. Only for the
/// files of Connection.
struct ConnectionCallbacks {
    static ngtcp2_callbacks all() noexcept;

    static int on_handshake_completed(ngtcp2_conn* conn, void* user);
    static int on_handshake_confirmed(ngtcp2_conn* conn, void* user);
    static int on_stream_data(ngtcp2_conn* conn, std::uint32_t flags, std::int64_t stream_id,
                              std::uint64_t offset, const std::uint8_t* bytes, std::size_t size,
                              void* user, void* stream_user);
    static int on_acknowledged(ngtcp2_conn* conn, std::int64_t stream_id, std::uint64_t offset,
                               std::uint64_t size, void* user, void* stream_user);
    static int on_stream_open(ngtcp2_conn* conn, std::int64_t stream_id, void* user);
    static int on_stream_close(ngtcp2_conn* conn, std::uint32_t flags, std::int64_t stream_id,
                               std::uint64_t code, void* user, void* stream_user);
    static int on_stream_reset(ngtcp2_conn* conn, std::int64_t stream_id, std::uint64_t final_size,
                               std::uint64_t code, void* user, void* stream_user);
    static int on_stream_window(ngtcp2_conn* conn, std::int64_t stream_id, std::uint64_t most,
                                void* user, void* stream_user);
    static int on_stream_limit(ngtcp2_conn* conn, std::uint64_t most, void* user);
    static int on_datagram(ngtcp2_conn* conn, std::uint32_t flags, const std::uint8_t* bytes,
                           std::size_t size, void* user);
    static int on_new_cid(ngtcp2_conn* conn, ngtcp2_cid* cid, std::uint8_t* token, std::size_t size,
                          void* user);
    static int on_drop_cid(ngtcp2_conn* conn, const ngtcp2_cid* cid, void* user);
    static int on_peer_cid(ngtcp2_conn* conn, ngtcp2_connection_id_status_type type,
                           std::uint64_t sequence, const ngtcp2_cid* cid, const std::uint8_t* token,
                           void* user);
    static int on_path_validation(ngtcp2_conn* conn, std::uint32_t flags, const ngtcp2_path* path,
                                  const ngtcp2_path* old_path, ngtcp2_path_validation_result result,
                                  void* user);
    static int on_stateless_reset(ngtcp2_conn* conn, const ngtcp2_pkt_stateless_reset* reset,
                                  void* user);
    static int on_path_challenge(ngtcp2_conn* conn, std::uint8_t* bytes, void* user);
    static void on_random(std::uint8_t* out, std::size_t size, const ngtcp2_rand_ctx* context);
};

}  // namespace nexar::quic
