#include "link/quic/short_cipher.hpp"

#include <nettle/memops.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <vector>

#include "base/time.hpp"

namespace nexar::quic {

namespace {

// The minimum of several runs, so that an interruption does not distort the result.
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
    if (!has_aes_instructions()) return 0;
    const std::vector<std::uint8_t> key(key_bytes(suite));
    ShortCipher by_nettle(suite, key);
    PacketCipher by_libcrypto(suite, PacketCipher::Direction::seal, key, 0);
    std::size_t longest = 0;
    for (const std::size_t size : kSizes) {
        if (seal_time(by_nettle, size) >= seal_time(by_libcrypto, size)) break;
        longest = size;
    }
    return longest;
}

}  // namespace

ShortCipher::ShortCipher(CipherSuite suite, std::span<const std::uint8_t> key)
    : block_(suite, key) {
    gcm_set_key(&hash_key_, block_.context(), block_.function());
}

ShortCipher::~ShortCipher() {
    OPENSSL_cleanse(&hash_key_, sizeof hash_key_);
    OPENSSL_cleanse(&state_, sizeof state_);
}

void ShortCipher::begin(std::span<const std::uint8_t> nonce,
                        std::span<const std::uint8_t> header) noexcept {
    gcm_set_iv(&state_, &hash_key_, nonce.size(), nonce.data());
    gcm_update(&state_, &hash_key_, header.size(), header.data());
}

void ShortCipher::finish(std::uint8_t* tag) noexcept {
    gcm_digest(&state_, &hash_key_, block_.context(), block_.function(), kTagBytes, tag);
}

bool ShortCipher::seal(std::uint8_t* sealed, std::span<const std::uint8_t> plain,
                       std::span<const std::uint8_t> nonce,
                       std::span<const std::uint8_t> header) noexcept {
    begin(nonce, header);
    gcm_encrypt(&state_, &hash_key_, block_.context(), block_.function(), plain.size(), sealed,
                plain.data());
    finish(sealed + plain.size());
    return true;
}

bool ShortCipher::open(std::uint8_t* plain, std::span<const std::uint8_t> sealed,
                       std::span<const std::uint8_t> nonce,
                       std::span<const std::uint8_t> header) noexcept {
    const auto body = sealed.first(sealed.size() - kTagBytes);
    std::array<std::uint8_t, kTagBytes> tag{};
    begin(nonce, header);
    gcm_decrypt(&state_, &hash_key_, block_.context(), block_.function(), body.size(), plain,
                body.data());
    finish(tag.data());
    return memeql_sec(tag.data(), sealed.last(kTagBytes).data(), tag.size()) != 0;
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
