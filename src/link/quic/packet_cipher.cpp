#include "link/quic/packet_cipher.hpp"

#include <isa-l/crc.h>
#include <openssl/crypto.h>
#define XXH_STATIC_LINKING_ONLY
#include <xxhash.h>
// On x86 the library chooses the vector width at run time, under other names.
#if defined(__x86_64__)
#include <xxh_x86dispatch.h>
#endif

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "link/quic/aes_block.hpp"
#include "link/quic/short_cipher.hpp"

namespace nexar::quic {

namespace {

const EVP_CIPHER* aead_of(CipherSuite suite) noexcept {
    switch (suite) {
        case CipherSuite::aes_128_gcm:
            return EVP_aes_128_gcm();
        case CipherSuite::aes_256_gcm:
            return EVP_aes_256_gcm();
        case CipherSuite::chacha20_poly1305:
            return EVP_chacha20_poly1305();
        case CipherSuite::checksum:
            break;
    }
    return nullptr;
}

const EVP_CIPHER* header_cipher_of(CipherSuite suite) noexcept {
    switch (suite) {
        case CipherSuite::aes_128_gcm:
            return EVP_aes_128_ecb();
        case CipherSuite::aes_256_gcm:
            return EVP_aes_256_ecb();
        case CipherSuite::chacha20_poly1305:
            return EVP_chacha20();
        case CipherSuite::checksum:
            break;
    }
    return nullptr;
}

EvpContext keyed(const EVP_CIPHER* cipher, std::span<const std::uint8_t> key, int encrypt) {
    if (cipher == nullptr) return nullptr;
    EvpContext context(EVP_CIPHER_CTX_new());
    NEXAR_ASSERT(context != nullptr);
    const int ok = EVP_CipherInit_ex(context.get(), cipher, nullptr, key.data(), nullptr, encrypt);
    NEXAR_ASSERT(ok == 1);
    return context;
}

int length(std::span<const std::uint8_t> bytes) noexcept {
    return static_cast<int>(bytes.size());
}

std::uint64_t last_word(std::span<const std::uint8_t> bytes) noexcept {
    std::uint64_t word = 0;
    for (const std::uint8_t byte : bytes.last(sizeof word)) word = word << 8U | byte;
    return word;
}

}  // namespace

std::size_t key_bytes(CipherSuite suite) noexcept {
    return suite == CipherSuite::aes_128_gcm ? 16 : kMaxKeyBytes;
}

std::uint64_t packet_limit(CipherSuite suite) noexcept {
    switch (suite) {
        case CipherSuite::aes_128_gcm:
        case CipherSuite::aes_256_gcm:
            return std::uint64_t{1} << 21;
        case CipherSuite::chacha20_poly1305:
        case CipherSuite::checksum:
            break;
    }
    return std::uint64_t{1} << 62;
}

std::uint64_t forgery_limit(CipherSuite suite) noexcept {
    switch (suite) {
        case CipherSuite::aes_128_gcm:
        case CipherSuite::aes_256_gcm:
            return std::uint64_t{1} << 50;
        case CipherSuite::chacha20_poly1305:
            return std::uint64_t{1} << 34;
        case CipherSuite::checksum:
            break;
    }
    return std::uint64_t{1} << 34;
}

PacketCipher::PacketCipher(CipherSuite suite, Direction direction,
                           std::span<const std::uint8_t> key)
    : PacketCipher(suite, direction, key, longest_short_packet(suite)) {}

PacketCipher::PacketCipher(CipherSuite suite, Direction direction,
                           std::span<const std::uint8_t> key, std::size_t longest_short)
    : evp_(keyed(aead_of(suite), key, direction == Direction::seal ? 1 : 0)),
      longest_short_(longest_short),
      short_(longest_short == 0 ? nullptr : std::make_unique<ShortCipher>(suite, key)) {
    NEXAR_ASSERT(key.size() == key_bytes(suite));
    if (evp_ != nullptr) return;
    XXH3_generateSecret(checksum_key_.data(), checksum_key_.size(), key.data(), key.size());
}

void PacketCipher::count_in(std::uint64_t& opened,
                            std::span<const std::uint8_t, kNonceBytes> iv) noexcept {
    opened_ = &opened;
    iv_end_ = last_word(iv);
}

PacketCipher::~PacketCipher() {
    OPENSSL_cleanse(checksum_key_.data(), checksum_key_.size());
}

PacketCipher::Tag PacketCipher::checksum(std::span<const std::uint8_t> plain,
                                         std::span<const std::uint8_t> nonce,
                                         std::span<const std::uint8_t> header) const noexcept {
    // ISA-L only reads it.
    const std::uint32_t body =
        crc32_iscsi(const_cast<std::uint8_t*>(plain.data()), length(plain), ~std::uint32_t{0});
    // The tag covers the header and the nonce, which holds the packet number, so a payload moved to
    // another packet is rejected. Only a holder of the key can compute it.
    std::array<std::uint8_t, sizeof body + kNonceBytes + 64> all{};
    NEXAR_ASSERT(nonce.size() == kNonceBytes && header.size() <= 64);
    std::memcpy(all.data(), &body, sizeof body);
    std::memcpy(all.data() + sizeof body, nonce.data(), kNonceBytes);
    std::memcpy(all.data() + sizeof body + kNonceBytes, header.data(), header.size());
    const XXH128_hash_t hash =
        XXH3_128bits_withSecret(all.data(), sizeof body + kNonceBytes + header.size(),
                                checksum_key_.data(), checksum_key_.size());
    Tag tag{};
    std::memcpy(tag.data(), &hash.low64, 8);
    std::memcpy(tag.data() + 8, &hash.high64, 8);
    return tag;
}

bool PacketCipher::seal(std::uint8_t* sealed, std::span<const std::uint8_t> plain,
                        std::span<const std::uint8_t> nonce,
                        std::span<const std::uint8_t> header) noexcept {
    if (evp_ == nullptr) {
        const Tag tag = checksum(plain, nonce, header);
        if (!plain.empty()) std::memmove(sealed, plain.data(), plain.size());
        std::memcpy(sealed + plain.size(), tag.data(), tag.size());
        return true;
    }
    if (short_ != nullptr && plain.size() <= longest_short_) {
        return short_->seal(sealed, plain, nonce, header);
    }
    EVP_CIPHER_CTX* evp = evp_.get();
    int written = 0;
    return EVP_EncryptInit_ex(evp, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
           EVP_EncryptUpdate(evp, nullptr, &written, header.data(), length(header)) == 1 &&
           EVP_EncryptUpdate(evp, sealed, &written, plain.data(), length(plain)) == 1 &&
           EVP_EncryptFinal_ex(evp, sealed + written, &written) == 1 &&
           EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_GET_TAG, kTagBytes, sealed + plain.size()) == 1;
}

bool PacketCipher::open(std::uint8_t* plain, std::span<const std::uint8_t> sealed,
                        std::span<const std::uint8_t> nonce,
                        std::span<const std::uint8_t> header) noexcept {
    const bool ok = unseal(plain, sealed, nonce, header);
    if (!ok || opened_ == nullptr) return ok;
    // RFC 9001 5.3: the nonce is the IV with the packet number XORed into its end.
    const std::uint64_t number = last_word(nonce) ^ iv_end_;
    if (number < next_number_) return ok;
    next_number_ = number + 1;
    ++*opened_;
    return ok;
}

bool PacketCipher::unseal(std::uint8_t* plain, std::span<const std::uint8_t> sealed,
                          std::span<const std::uint8_t> nonce,
                          std::span<const std::uint8_t> header) noexcept {
    if (sealed.size() < kTagBytes) return false;
    if (short_ != nullptr && sealed.size() - kTagBytes <= longest_short_) {
        return short_->open(plain, sealed, nonce, header);
    }
    const auto body = sealed.first(sealed.size() - kTagBytes);
    Tag tag{};
    std::memcpy(tag.data(), body.data() + body.size(), tag.size());
    if (evp_ == nullptr) {
        if (checksum(body, nonce, header) != tag) return false;
        std::memmove(plain, body.data(), body.size());
        return true;
    }
    EVP_CIPHER_CTX* evp = evp_.get();
    int written = 0;
    return EVP_DecryptInit_ex(evp, nullptr, nullptr, nullptr, nonce.data()) == 1 &&
           EVP_CIPHER_CTX_ctrl(evp, EVP_CTRL_AEAD_SET_TAG, kTagBytes, tag.data()) == 1 &&
           EVP_DecryptUpdate(evp, nullptr, &written, header.data(), length(header)) == 1 &&
           EVP_DecryptUpdate(evp, plain, &written, body.data(), length(body)) == 1 &&
           EVP_DecryptFinal_ex(evp, plain + written, &written) == 1;
}

HeaderMask::HeaderMask(CipherSuite suite, std::span<const std::uint8_t> key) : suite_(suite) {
    NEXAR_ASSERT(key.size() == key_bytes(suite));
    const bool aes = suite == CipherSuite::aes_128_gcm || suite == CipherSuite::aes_256_gcm;
    if (aes && has_aes_instructions()) {
        aes_ = std::make_unique<AesBlock>(suite, key);
    } else {
        evp_ = keyed(header_cipher_of(suite), key, 1);
    }
}

HeaderMask::~HeaderMask() = default;

bool HeaderMask::make(std::span<std::uint8_t, kMaskBytes> mask,
                      std::span<const std::uint8_t, kSampleBytes> sample) noexcept {
    if (aes_ != nullptr) {
        std::array<std::uint8_t, kSampleBytes> block{};
        aes_->encrypt(block.data(), sample);
        std::copy_n(block.begin(), mask.size(), mask.begin());
        return true;
    }
    if (evp_ == nullptr) {
        std::ranges::fill(mask, std::uint8_t{0});
        return true;
    }
    int written = 0;
    if (suite_ == CipherSuite::chacha20_poly1305) {
        // The sample is the counter and nonce that EVP takes as IV; the mask is the cipher of
        // zeros.
        constexpr std::array<std::uint8_t, kMaskBytes> kZeros{};
        return EVP_EncryptInit_ex(evp_.get(), nullptr, nullptr, nullptr, sample.data()) == 1 &&
               EVP_EncryptUpdate(evp_.get(), mask.data(), &written, kZeros.data(),
                                 length(kZeros)) == 1;
    }
    std::array<std::uint8_t, 2 * kSampleBytes> block{};
    if (EVP_EncryptUpdate(evp_.get(), block.data(), &written, sample.data(), length(sample)) != 1) {
        return false;
    }
    std::copy_n(block.begin(), mask.size(), mask.begin());
    return true;
}

}  // namespace nexar::quic
