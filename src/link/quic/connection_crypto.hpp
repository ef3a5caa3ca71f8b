#pragma once

#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>

#include "link/quic/connection.hpp"
#include "link/quic/key_schedule.hpp"

/// Connects ngtcp2 and GnuTLS with our packet protection. Only for the files of Connection.
namespace nexar::quic {

/// GnuTLS keeps a pointer to this object, with which the callbacks find the connection.
struct Connection::TlsBinding {
    ngtcp2_crypto_conn_ref reference{};
};

struct CryptoCallbacks {
    /// Sets the entries for packet protection and keys.
    static void fill(ngtcp2_callbacks& callbacks) noexcept;

    /// Makes `session` serve the connection of `binding`.
    static bool bind(Connection& connection, bool client);

    /// GnuTLS calls it with each new pair of secrets; both may be null.
    static int on_secrets(gnutls_session_t session, gnutls_record_encryption_level_t level,
                          const void* read_secret, const void* write_secret, size_t secret_bytes);

    /// True if the peer sent the transport parameters that RFC 9001 8.2 requires. ngtcp2 leaves
    /// that check to the TLS library and asserts the result; GnuTLS does not check.
    static bool has_parameters(Connection& connection, ngtcp2_encryption_level level);
    static bool install(Connection& connection, ngtcp2_encryption_level level,
                        const TrafficSecret* read, const TrafficSecret* write);
    static int install_initial(ngtcp2_conn* conn, const ngtcp2_cid* cid);

    /// True if the peer may send this much handshake data; GnuTLS would buffer megabytes of it.
    static bool admit(Connection& connection, std::size_t bytes);

    /// The suite that protects packets with data.
    static CipherSuite data_suite(const Connection& connection) noexcept;
    static void count_opened(Connection& connection, PacketCipher& cipher,
                             const PacketKeys& keys) noexcept;
    static void count_key_update(Connection& connection) noexcept;
};

}  // namespace nexar::quic
