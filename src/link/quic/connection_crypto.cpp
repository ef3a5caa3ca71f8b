#include "link/quic/connection_crypto.hpp"

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>

#include <algorithm>
#include <memory>
#include <tuple>

#include "base/assert.hpp"
#include "link/quic/native.hpp"

namespace nexar::quic {

namespace {

// ngtcp2 passes algorithm handles around but never uses them: each context knows its own algorithm.
constexpr char kAlgorithm = 0;
void* algorithm() noexcept {
    return const_cast<char*>(&kAlgorithm);
}

Connection& connection_of(void* user) noexcept {
    return *static_cast<Connection*>(user);
}

ngtcp2_crypto_aead aead() noexcept {
    return {.native_handle = algorithm(), .max_overhead = kTagBytes};
}

ngtcp2_crypto_ctx context(CipherSuite suite) noexcept {
    return {.aead = aead(),
            .md = {.native_handle = algorithm()},
            .hp = {.native_handle = algorithm()},
            .max_encryption = packet_limit(suite),
            .max_decryption_failure = forgery_limit(suite)};
}

using Direction = PacketCipher::Direction;

// Contexts on their way to ngtcp2, which owns them once it has installed them.
struct Contexts {
    std::unique_ptr<PacketCipher> cipher;
    std::unique_ptr<HeaderMask> mask;
    PacketKeys keys;
    ngtcp2_crypto_aead_ctx aead{};
    ngtcp2_crypto_cipher_ctx header{};

    Contexts(CipherSuite suite, Direction direction, const TrafficSecret& secret)
        : keys(derive_keys(suite, secret)) {
        cipher = std::make_unique<PacketCipher>(suite, direction, keys.key_span());
        mask = std::make_unique<HeaderMask>(suite, keys.header_key_span());
        aead.native_handle = cipher.get();
        header.native_handle = mask.get();
    }

    bool handed_over(int code) noexcept {
        if (code != 0) return false;
        std::ignore = cipher.release();
        std::ignore = mask.release();
        return true;
    }
};

CipherSuite suite_of(security::Cipher cipher) noexcept {
    switch (cipher) {
        case security::Cipher::aes_128_gcm:
            return CipherSuite::aes_128_gcm;
        case security::Cipher::aes_256_gcm:
            return CipherSuite::aes_256_gcm;
        case security::Cipher::chacha20_poly1305:
            break;
    }
    return CipherSuite::chacha20_poly1305;
}

int encrypt(std::uint8_t* dest, const ngtcp2_crypto_aead* /*aead*/,
            const ngtcp2_crypto_aead_ctx* aead_ctx, const std::uint8_t* plaintext,
            std::size_t plaintextlen, const std::uint8_t* nonce, std::size_t noncelen,
            const std::uint8_t* aad, std::size_t aadlen) {
    auto& cipher = *static_cast<PacketCipher*>(aead_ctx->native_handle);
    const bool ok = cipher.seal(dest, {plaintext, plaintextlen}, {nonce, noncelen}, {aad, aadlen});
    return ok ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

int decrypt(std::uint8_t* dest, const ngtcp2_crypto_aead* /*aead*/,
            const ngtcp2_crypto_aead_ctx* aead_ctx, const std::uint8_t* ciphertext,
            std::size_t ciphertextlen, const std::uint8_t* nonce, std::size_t noncelen,
            const std::uint8_t* aad, std::size_t aadlen) {
    auto& cipher = *static_cast<PacketCipher*>(aead_ctx->native_handle);
    const bool ok =
        cipher.open(dest, {ciphertext, ciphertextlen}, {nonce, noncelen}, {aad, aadlen});
    return ok ? 0 : NGTCP2_ERR_DECRYPT;
}

int header_mask(std::uint8_t* dest, const ngtcp2_crypto_cipher* /*hp*/,
                const ngtcp2_crypto_cipher_ctx* hp_ctx, const std::uint8_t* sample) {
    auto& mask = *static_cast<HeaderMask*>(hp_ctx->native_handle);
    const bool ok = mask.make(std::span<std::uint8_t, kMaskBytes>(dest, kMaskBytes),
                              std::span<const std::uint8_t, kSampleBytes>(sample, kSampleBytes));
    return ok ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

void delete_cipher(ngtcp2_conn* /*conn*/, ngtcp2_crypto_aead_ctx* context, void* /*user*/) {
    const std::unique_ptr<PacketCipher> gone(static_cast<PacketCipher*>(context->native_handle));
    context->native_handle = nullptr;
}

void delete_mask(ngtcp2_conn* /*conn*/, ngtcp2_crypto_cipher_ctx* context, void* /*user*/) {
    const std::unique_ptr<HeaderMask> gone(static_cast<HeaderMask*>(context->native_handle));
    context->native_handle = nullptr;
}

int on_client_initial(ngtcp2_conn* conn, void* /*user*/) {
    const ngtcp2_cid* cid = ngtcp2_conn_get_dcid(conn);
    if (const int code = CryptoCallbacks::install_initial(conn, cid); code != 0) {
        return code;
    }
    const int code =
        ngtcp2_crypto_read_write_crypto_data(conn, NGTCP2_ENCRYPTION_LEVEL_INITIAL, nullptr, 0);
    return code == 0 ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

int on_server_initial(ngtcp2_conn* conn, const ngtcp2_cid* cid, void* /*user*/) {
    return CryptoCallbacks::install_initial(conn, cid);
}

int on_retry(ngtcp2_conn* conn, const ngtcp2_pkt_hd* header, void* /*user*/) {
    return CryptoCallbacks::install_initial(conn, &header->scid);
}

int on_crypto_data(ngtcp2_conn* conn, ngtcp2_encryption_level level, std::uint64_t offset,
                   const std::uint8_t* bytes, std::size_t size, void* user) {
    if (!CryptoCallbacks::admit(connection_of(user), size)) return NGTCP2_ERR_CRYPTO;
    return ngtcp2_crypto_recv_crypto_data_cb(conn, level, offset, bytes, size, user);
}

int on_update_key(ngtcp2_conn* /*conn*/, std::uint8_t* rx_secret, std::uint8_t* tx_secret,
                  ngtcp2_crypto_aead_ctx* rx_aead_ctx, std::uint8_t* rx_iv,
                  ngtcp2_crypto_aead_ctx* tx_aead_ctx, std::uint8_t* tx_iv,
                  const std::uint8_t* current_rx_secret, const std::uint8_t* current_tx_secret,
                  std::size_t secretlen, void* user) {
    const CipherSuite suite = CryptoCallbacks::data_suite(connection_of(user));
    const auto turn = [&](const std::uint8_t* current, Direction direction, std::uint8_t* secret,
                          ngtcp2_crypto_aead_ctx* context, std::uint8_t* iv) {
        const TrafficSecret next = next_secret(TrafficSecret({current, secretlen}));
        const PacketKeys keys = derive_keys(suite, next);
        std::copy_n(next.bytes.begin(), next.size, secret);
        std::ranges::copy(keys.iv, iv);
        auto cipher = std::make_unique<PacketCipher>(suite, direction, keys.key_span());
        if (direction == Direction::open)
            CryptoCallbacks::count_opened(connection_of(user), *cipher, keys);
        context->native_handle = cipher.release();
    };
    turn(current_rx_secret, Direction::open, rx_secret, rx_aead_ctx, rx_iv);
    turn(current_tx_secret, Direction::seal, tx_secret, tx_aead_ctx, tx_iv);
    CryptoCallbacks::count_key_update(connection_of(user));
    return 0;
}

}  // namespace

int CryptoCallbacks::install_initial(ngtcp2_conn* conn, const ngtcp2_cid* cid) {
    constexpr auto kSuite = CipherSuite::aes_128_gcm;  // RFC 9001 5.2
    const ngtcp2_crypto_ctx initial = context(kSuite);
    ngtcp2_conn_set_initial_crypto_ctx(conn, &initial);

    const bool server = ngtcp2_conn_is_server(conn) != 0;
    const InitialSecrets secrets = initial_secrets({cid->data, cid->datalen});
    Contexts read(kSuite, Direction::open, server ? secrets.client : secrets.server);
    Contexts write(kSuite, Direction::seal, server ? secrets.server : secrets.client);
    const int code = ngtcp2_conn_install_initial_key(
        conn, &read.aead, read.keys.iv.data(), &read.header, &write.aead, write.keys.iv.data(),
        &write.header, kNonceBytes);
    if (!read.handed_over(code) || !write.handed_over(code)) return NGTCP2_ERR_CALLBACK_FAILURE;

    if (!server && ngtcp2_conn_after_retry(conn) == 0) {
        auto retry = std::make_unique<PacketCipher>(kSuite, Direction::seal, retry_key());
        const ngtcp2_crypto_aead algorithm_of_retry = aead();
        const ngtcp2_crypto_aead_ctx retry_context{.native_handle = retry.release()};
        ngtcp2_conn_set_retry_aead(conn, &algorithm_of_retry, &retry_context);
    }
    return 0;
}

bool CryptoCallbacks::has_parameters(Connection& connection, ngtcp2_encryption_level level) {
    // The parameters are in the client's hello, and in the server's second message.
    if (connection.dialed_ && level != NGTCP2_ENCRYPTION_LEVEL_1RTT) return true;
    ngtcp2_conn* conn = connection.conn_.get();
    if (ngtcp2_conn_get_remote_transport_params(conn) != nullptr) return true;
    ngtcp2_conn_set_tls_alert(conn, static_cast<std::uint8_t>(security::Alert::missing_extension));
    return false;
}

bool CryptoCallbacks::install(Connection& connection, ngtcp2_encryption_level level,
                              const TrafficSecret* read, const TrafficSecret* write) {
    ngtcp2_conn* conn = connection.conn_.get();
    const auto cipher = connection.tls_->cipher();
    if (!cipher) return false;
    CipherSuite suite = suite_of(*cipher);
    const bool data = level == NGTCP2_ENCRYPTION_LEVEL_1RTT;
    const bool bare = connection.options_.protection == Protection::none;
    if (ngtcp2_conn_get_crypto_ctx(conn)->aead.native_handle == nullptr) {
        const ngtcp2_crypto_ctx agreed = context(bare ? CipherSuite::checksum : suite);
        ngtcp2_conn_set_crypto_ctx(conn, &agreed);
    }
    if (data && bare) suite = CipherSuite::checksum;

    if (read != nullptr) {
        Contexts contexts(suite, Direction::open, *read);
        count_opened(connection, *contexts.cipher, contexts.keys);
        const auto& iv = contexts.keys.iv;
        const int code =
            data ? ngtcp2_conn_install_rx_key(conn, read->bytes.data(), read->size, &contexts.aead,
                                              iv.data(), iv.size(), &contexts.header)
                 : ngtcp2_conn_install_rx_handshake_key(conn, &contexts.aead, iv.data(), iv.size(),
                                                        &contexts.header);
        if (!contexts.handed_over(code)) return false;
    }
    if (write != nullptr) {
        Contexts contexts(suite, Direction::seal, *write);
        const auto& iv = contexts.keys.iv;
        const int code = data ? ngtcp2_conn_install_tx_key(conn, write->bytes.data(), write->size,
                                                           &contexts.aead, iv.data(), iv.size(),
                                                           &contexts.header)
                              : ngtcp2_conn_install_tx_handshake_key(
                                    conn, &contexts.aead, iv.data(), iv.size(), &contexts.header);
        if (!contexts.handed_over(code)) return false;
    }
    return true;
}

int CryptoCallbacks::on_secrets(gnutls_session_t session, gnutls_record_encryption_level_t level,
                                const void* read_secret, const void* write_secret,
                                size_t secret_bytes) {
    auto* reference = static_cast<ngtcp2_crypto_conn_ref*>(gnutls_session_get_ptr(session));
    auto& connection = *static_cast<Connection*>(reference->user_data);
    const auto quic_level = ngtcp2_crypto_gnutls_from_gnutls_record_encryption_level(level);
    const auto secret = [&](const void* from) -> std::optional<TrafficSecret> {
        if (from == nullptr) return std::nullopt;
        return TrafficSecret({static_cast<const std::uint8_t*>(from), secret_bytes});
    };
    const auto read = secret(read_secret);
    const auto write = secret(write_secret);
    if (!has_parameters(connection, quic_level)) return -1;
    const bool ok =
        install(connection, quic_level, read ? &*read : nullptr, write ? &*write : nullptr);
    return ok ? 0 : -1;
}

void CryptoCallbacks::fill(ngtcp2_callbacks& callbacks) noexcept {
    callbacks.client_initial = on_client_initial;
    callbacks.recv_client_initial = on_server_initial;
    callbacks.recv_crypto_data = on_crypto_data;
    callbacks.recv_retry = on_retry;
    callbacks.encrypt = encrypt;
    callbacks.decrypt = decrypt;
    callbacks.hp_mask = header_mask;
    callbacks.update_key = on_update_key;
    callbacks.delete_crypto_aead_ctx = delete_cipher;
    callbacks.delete_crypto_cipher_ctx = delete_mask;
}

bool CryptoCallbacks::bind(Connection& connection, bool client) {
    gnutls_session_t session = connection.tls_->native();
    connection.binding_ = std::make_unique<Connection::TlsBinding>();
    connection.binding_->reference = {
        .get_conn =
            [](ngtcp2_crypto_conn_ref* reference) {
                return static_cast<Connection*>(reference->user_data)->conn_.get();
            },
        .user_data = &connection};
    gnutls_session_set_ptr(session, &connection.binding_->reference);
    const int code = client ? ngtcp2_crypto_gnutls_configure_client_session(session)
                            : ngtcp2_crypto_gnutls_configure_server_session(session);
    if (code != 0) return false;
    // Replaces ngtcp2's own function, which would make GnuTLS protect the packets.
    gnutls_handshake_set_secret_function(session, on_secrets);
    return true;
}

bool CryptoCallbacks::admit(Connection& connection, std::size_t bytes) {
    return connection.tls_->admit(bytes);
}

void CryptoCallbacks::count_opened(Connection& connection, PacketCipher& cipher,
                                   const PacketKeys& keys) noexcept {
    cipher.count_in(connection.opened_, keys.iv);
}

CipherSuite CryptoCallbacks::data_suite(const Connection& connection) noexcept {
    if (connection.options_.protection == Protection::none) return CipherSuite::checksum;
    return suite_of(*connection.tls_->cipher());
}

void CryptoCallbacks::count_key_update(Connection& connection) noexcept {
    ++connection.key_updates_;
}

}  // namespace nexar::quic
