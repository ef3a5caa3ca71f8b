#include "link/quic/short_cipher.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "base/assert.hpp"
#include "base/time.hpp"

namespace nexar::quic {

namespace {

gnutls_datum_t datum(std::span<const std::uint8_t> bytes) noexcept {
    // GnuTLS only reads it.
    return {.data = const_cast<std::uint8_t*>(bytes.data()),
            .size = static_cast<unsigned>(bytes.size())};
}

// The least of several tries, so that an interruption does not decide.
template <class Cipher>
Duration seal_time(Cipher& cipher, std::size_t plain_bytes) {
    constexpr int kTries = 9;
    constexpr int kPacketsPerTry = 8;
    constexpr std::array<std::uint8_t, 13> kHeader{};
    constexpr std::array<std::uint8_t, kNonceBytes> kNonce{};
    const SteadyClock clock;
    std::vector<std::uint8_t> packet(plain_bytes + kTagBytes);
    const std::span<const std::uint8_t> plain(packet.data(), plain_bytes);
    Duration least = Duration::max();
    for (int i = 0; i < kTries; ++i) {
        const TimePoint begin = clock.now();
        for (int k = 0; k < kPacketsPerTry; ++k) cipher.seal(packet.data(), plain, kNonce, kHeader);
        least = std::min(least, clock.now() - begin);
    }
    return least;
}

std::size_t measure(CipherSuite suite) {
    constexpr std::array<std::size_t, 4> kSizes = {64, 512, 1440, 4096};
    const std::vector<std::uint8_t> key(key_bytes(suite));
    ShortCipher by_gnutls(suite, key);
    PacketCipher by_libcrypto(suite, PacketCipher::Direction::seal, key, 0);
    std::size_t longest = 0;
    for (const std::size_t size : kSizes) {
        if (seal_time(by_gnutls, size) >= seal_time(by_libcrypto, size)) break;
        longest = size;
    }
    return longest;
}

}  // namespace

ShortCipher::ShortCipher(CipherSuite suite, std::span<const std::uint8_t> key) {
    const auto algorithm =
        suite == CipherSuite::aes_128_gcm ? GNUTLS_CIPHER_AES_128_GCM : GNUTLS_CIPHER_AES_256_GCM;
    const gnutls_datum_t secret = datum(key);
    gnutls_aead_cipher_hd_t handle = nullptr;
    const int code = gnutls_aead_cipher_init(&handle, algorithm, &secret);
    NEXAR_ASSERT(code == 0);
    handle_.reset(handle);
}

bool ShortCipher::seal(std::uint8_t* sealed, std::span<const std::uint8_t> plain,
                       std::span<const std::uint8_t> nonce,
                       std::span<const std::uint8_t> header) noexcept {
    std::size_t size = plain.size() + kTagBytes;
    return gnutls_aead_cipher_encrypt(handle_.get(), nonce.data(), nonce.size(), header.data(),
                                      header.size(), kTagBytes, plain.data(), plain.size(), sealed,
                                      &size) == 0;
}

bool ShortCipher::open(std::uint8_t* plain, std::span<const std::uint8_t> sealed,
                       std::span<const std::uint8_t> nonce,
                       std::span<const std::uint8_t> header) noexcept {
    std::size_t size = sealed.size() - kTagBytes;
    return gnutls_aead_cipher_decrypt(handle_.get(), nonce.data(), nonce.size(), header.data(),
                                      header.size(), kTagBytes, sealed.data(), sealed.size(), plain,
                                      &size) == 0;
}

std::size_t longest_short_packet(CipherSuite suite) {
    switch (suite) {
        case CipherSuite::aes_128_gcm: {
            static const std::size_t longest = measure(suite);
            return longest;
        }
        case CipherSuite::aes_256_gcm: {
            static const std::size_t longest = measure(suite);
            return longest;
        }
        case CipherSuite::chacha20_poly1305:
        case CipherSuite::checksum:
            break;
    }
    return 0;
}

}  // namespace nexar::quic
