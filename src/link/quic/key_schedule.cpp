#include "link/quic/key_schedule.hpp"

#include <openssl/crypto.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <string_view>

#include "base/assert.hpp"

namespace nexar::quic {

namespace {

using ByteView = std::span<const std::uint8_t>;

const EVP_MD* hash_of(std::size_t secret_size) noexcept {
    return secret_size == 48 ? EVP_sha384() : EVP_sha256();
}

void hmac(const EVP_MD* hash, ByteView key, ByteView content, std::span<std::uint8_t> out) {
    std::array<std::uint8_t, EVP_MAX_MD_SIZE> whole{};
    unsigned size = 0;
    const auto* done = HMAC(hash, key.data(), static_cast<int>(key.size()), content.data(),
                            content.size(), whole.data(), &size);
    NEXAR_ASSERT(done != nullptr && out.size() <= size);
    std::copy_n(whole.begin(), out.size(), out.begin());
    OPENSSL_cleanse(whole.data(), whole.size());
}

// HKDF-Expand-Label of RFC 8446 7.1 with an empty context. All outputs here are at most one hash
// long, so only the first block of HKDF-Expand (RFC 5869 2.3) is needed.
void expand_label(const TrafficSecret& secret, std::string_view label,
                  std::span<std::uint8_t> out) noexcept {
    constexpr std::string_view kPrefix = "tls13 ";
    std::array<std::uint8_t, 40> content{};
    NEXAR_ASSERT(kPrefix.size() + label.size() + 5 <= content.size());
    auto* at = content.data();
    *at++ = 0;
    *at++ = static_cast<std::uint8_t>(out.size());
    *at++ = static_cast<std::uint8_t>(kPrefix.size() + label.size());
    at = std::ranges::copy(kPrefix, at).out;
    at = std::ranges::copy(label, at).out;
    *at++ = 0;
    *at++ = 1;
    hmac(hash_of(secret.size), secret.span(),
         {content.data(), static_cast<std::size_t>(at - content.data())}, out);
}

}  // namespace

TrafficSecret::TrafficSecret(std::span<const std::uint8_t> secret) noexcept : size(secret.size()) {
    NEXAR_ASSERT(size == 32 || size == 48);
    std::ranges::copy(secret, bytes.begin());
}

TrafficSecret::~TrafficSecret() {
    OPENSSL_cleanse(bytes.data(), bytes.size());
}

PacketKeys::~PacketKeys() {
    OPENSSL_cleanse(key.data(), key.size());
    OPENSSL_cleanse(iv.data(), iv.size());
    OPENSSL_cleanse(header_key.data(), header_key.size());
}

PacketKeys derive_keys(CipherSuite suite, const TrafficSecret& secret) noexcept {
    PacketKeys keys;
    keys.key_size = key_bytes(suite);
    expand_label(secret, "quic key", std::span(keys.key).first(keys.key_size));
    expand_label(secret, "quic iv", keys.iv);
    expand_label(secret, "quic hp", std::span(keys.header_key).first(keys.key_size));
    return keys;
}

TrafficSecret next_secret(const TrafficSecret& secret) noexcept {
    TrafficSecret next;
    next.size = secret.size;
    expand_label(secret, "quic ku", std::span(next.bytes).first(next.size));
    return next;
}

InitialSecrets initial_secrets(std::span<const std::uint8_t> connection_id) noexcept {
    // RFC 9001 5.2
    constexpr std::array<std::uint8_t, 20> kSalt = {0x38, 0x76, 0x2c, 0xf7, 0xf5, 0x59, 0x34,
                                                    0xb3, 0x4d, 0x17, 0x9a, 0xe6, 0xa4, 0xc8,
                                                    0x0c, 0xad, 0xcc, 0xbb, 0x7f, 0x0a};
    TrafficSecret initial;
    initial.size = 32;
    hmac(EVP_sha256(), kSalt, connection_id, std::span(initial.bytes).first(32));
    InitialSecrets secrets;
    secrets.client.size = 32;
    secrets.server.size = 32;
    expand_label(initial, "client in", std::span(secrets.client.bytes).first(32));
    expand_label(initial, "server in", std::span(secrets.server.bytes).first(32));
    return secrets;
}

std::span<const std::uint8_t, 16> retry_key() noexcept {
    static constexpr std::array<std::uint8_t, 16> kKey = {0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66,
                                                          0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54,
                                                          0xe3, 0x68, 0xc8, 0x4e};
    return kKey;
}

}  // namespace nexar::quic
