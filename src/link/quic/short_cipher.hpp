#pragma once

#include <nettle/gcm.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "link/quic/aes_block.hpp"
#include "link/quic/packet_cipher.hpp"

namespace nexar::quic {

/// AES-GCM by Nettle, for packets so short that libcrypto's fixed cost per call outweighs its
/// speed. Both produce the same bytes. One thread at a time.
class ShortCipher {
public:
    ShortCipher(CipherSuite suite, std::span<const std::uint8_t> key);
    ~ShortCipher();
    ShortCipher(const ShortCipher&) = delete;
    ShortCipher& operator=(const ShortCipher&) = delete;

    /// As in PacketCipher.
    bool seal(std::uint8_t* sealed, std::span<const std::uint8_t> plain,
              std::span<const std::uint8_t> nonce, std::span<const std::uint8_t> header) noexcept;
    bool open(std::uint8_t* plain, std::span<const std::uint8_t> sealed,
              std::span<const std::uint8_t> nonce, std::span<const std::uint8_t> header) noexcept;

private:
    void begin(std::span<const std::uint8_t> nonce, std::span<const std::uint8_t> header) noexcept;
    void finish(std::uint8_t* tag) noexcept;

    AesBlock block_;
    gcm_key hash_key_{};
    gcm_ctx state_{};
};

/// The longest plain text for which ShortCipher is faster on this machine; 0: it never is.
/// Measured once per process, at the first call, because machines differ.
std::size_t longest_short_packet(CipherSuite suite);

}  // namespace nexar::quic
