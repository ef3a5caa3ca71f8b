#pragma once

#include <openssl/evp.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace nexar::quic {

/// How packets are protected. All are from RFC 9001 except `checksum`, which hides nothing: its tag
/// detects corruption, and strangers who do not see the packets cannot forge it.
enum class CipherSuite : std::uint8_t { aes_128_gcm, aes_256_gcm, chacha20_poly1305, checksum };

inline constexpr std::size_t kTagBytes = 16;
inline constexpr std::size_t kNonceBytes = 12;
inline constexpr std::size_t kSampleBytes = 16;  // of header protection, RFC 9001 5.4.2
inline constexpr std::size_t kMaskBytes = 5;
inline constexpr std::size_t kMaxKeyBytes = 32;

std::size_t key_bytes(CipherSuite suite) noexcept;

/// How many packets of up to 64 KiB one key may protect before it must be replaced. RFC 9001 6.6
/// allows 2^23 packets of 2^14 bytes with AES-GCM; the bound is on blocks, so four times larger
/// packets get a quarter.
std::uint64_t packet_limit(CipherSuite suite) noexcept;

/// How many forged packets a receiver may see with one key (RFC 9001 6.6), with the same
/// correction.
std::uint64_t forgery_limit(CipherSuite suite) noexcept;

class AesBlock;
class ShortCipher;

struct EvpContextFree {
    void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};
using EvpContext = std::unique_ptr<EVP_CIPHER_CTX, EvpContextFree>;

/// Protects or unprotects packets with one key. It uses libcrypto with a context that is set up
/// once, because setting the key for each packet costs more than a short packet itself, or
/// ShortCipher where that is faster. One thread at a time.
class PacketCipher {
public:
    enum class Direction : std::uint8_t { seal, open };

    PacketCipher(CipherSuite suite, Direction direction, std::span<const std::uint8_t> key);
    /// The same, with ShortCipher for plain texts of up to `longest_short` bytes.
    PacketCipher(CipherSuite suite, Direction direction, std::span<const std::uint8_t> key,
                 std::size_t longest_short);
    ~PacketCipher();
    PacketCipher(const PacketCipher&) = delete;
    PacketCipher& operator=(const PacketCipher&) = delete;

    /// Writes plain.size() + kTagBytes bytes to `sealed`, which may overlap `plain` exactly.
    bool seal(std::uint8_t* sealed, std::span<const std::uint8_t> plain,
              std::span<const std::uint8_t> nonce, std::span<const std::uint8_t> header) noexcept;

    /// Writes sealed.size() - kTagBytes bytes to `plain`. Returns false if the peer did not seal
    /// `sealed`.
    bool open(std::uint8_t* plain, std::span<const std::uint8_t> sealed,
              std::span<const std::uint8_t> nonce, std::span<const std::uint8_t> header) noexcept;

    /// Counts opened packets in `opened`, which must outlive this object: only packets newer than
    /// all earlier ones, so that replays do not count. `iv` is the one that nonces are made with.
    void count_in(std::uint64_t& opened, std::span<const std::uint8_t, kNonceBytes> iv) noexcept;

private:
    using Tag = std::array<std::uint8_t, kTagBytes>;

    Tag checksum(std::span<const std::uint8_t> plain, std::span<const std::uint8_t> nonce,
                 std::span<const std::uint8_t> header) const noexcept;

    bool unseal(std::uint8_t* plain, std::span<const std::uint8_t> sealed,
                std::span<const std::uint8_t> nonce, std::span<const std::uint8_t> header) noexcept;

    EvpContext evp_;  // null: checksum
    std::size_t longest_short_ = 0;
    std::unique_ptr<ShortCipher> short_;  // null: not used
    std::uint64_t* opened_ = nullptr;
    std::uint64_t iv_end_ = 0;
    std::uint64_t next_number_ = 0;  // newer than all opened ones
    // XXH3 takes its key as a "secret" of at least 136 bytes.
    std::array<std::uint8_t, 192> checksum_key_{};
};

/// Makes the mask that hides the packet number, RFC 9001 5.4. With `checksum` nothing is hidden.
class HeaderMask {
public:
    HeaderMask(CipherSuite suite, std::span<const std::uint8_t> key);
    ~HeaderMask();
    HeaderMask(const HeaderMask&) = delete;
    HeaderMask& operator=(const HeaderMask&) = delete;

    bool make(std::span<std::uint8_t, kMaskBytes> mask,
              std::span<const std::uint8_t, kSampleBytes> sample) noexcept;

private:
    CipherSuite suite_;
    std::unique_ptr<AesBlock> aes_;  // where it is faster
    EvpContext evp_;                 // null: aes_, or checksum
};

}  // namespace nexar::quic
