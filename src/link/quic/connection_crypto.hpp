#pragma once

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include "link/quic/connection.hpp"
#include "link/quic/key_schedule.hpp"

/// How ngtcp2 and GnuTLS reach our packet protection. For the files of Connection only.
namespace nexar::quic {

/// What GnuTLS keeps a pointer to, to find the connection.
struct Connection::TlsBinding {
    ngtcp2_crypto_conn_ref reference{};
};

struct CryptoCallbacks {
    /// Sets the entries for packet protection and keys.
    static void fill(ngtcp2_callbacks& callbacks) noexcept;

    /// Makes `session` feed the connection that `binding` leads to.
    static bool bind(Connection& connection, bool client);

    /// Called by GnuTLS with each new pair of secrets; both may be null.
    static int on_secrets(gnutls_session_t session, gnutls_record_encryption_level_t level,
                          const void* read_secret, const void* write_secret, size_t secret_bytes);

    /// Whether the peer said what RFC 9001 8.2 makes it say. ngtcp2 leaves that to the TLS library
    /// and asserts it, GnuTLS knows nothing of it.
    static bool has_parameters(Connection& connection, ngtcp2_encryption_level level);
    static bool install(Connection& connection, ngtcp2_encryption_level level,
                        const TrafficSecret* read, const TrafficSecret* write);
    static int install_initial(ngtcp2_conn* conn, const ngtcp2_cid* cid);

    /// Whether the peer may send as much handshake; GnuTLS would collect megabytes of it.
    static bool admit(Connection& connection, std::size_t bytes);

    /// What protects packets that carry data.
    static CipherSuite data_suite(const Connection& connection) noexcept;
    static void count_opened(Connection& connection, PacketCipher& cipher,
                             const PacketKeys& keys) noexcept;
    static void count_key_update(Connection& connection) noexcept;
};

}  // namespace nexar::quic
