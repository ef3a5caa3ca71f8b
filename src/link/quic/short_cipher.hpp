#pragma once

#include <gnutls/crypto.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "link/quic/packet_cipher.hpp"

namespace nexar::quic {

/// AES-GCM by GnuTLS, for packets so short that libcrypto's fixed cost per call outweighs its
/// speed. Both give the same bytes. One thread at a time.
class ShortCipher {
public:
    ShortCipher(CipherSuite suite, std::span<const std::uint8_t> key);

    /// As PacketCipher's.
    bool seal(std::uint8_t* sealed, std::span<const std::uint8_t> plain,
              std::span<const std::uint8_t> nonce, std::span<const std::uint8_t> header) noexcept;
    bool open(std::uint8_t* plain, std::span<const std::uint8_t> sealed,
              std::span<const std::uint8_t> nonce, std::span<const std::uint8_t> header) noexcept;

private:
    struct HandleFree {
        void operator()(gnutls_aead_cipher_hd_t handle) const noexcept {
            gnutls_aead_cipher_deinit(handle);
        }
    };
    std::unique_ptr<std::remove_pointer_t<gnutls_aead_cipher_hd_t>, HandleFree> handle_;
};

/// The longest plain text for which ShortCipher is the faster one on this machine; 0: for none.
/// Measured at the first call, once per process: the answer differs from machine to machine.
std::size_t longest_short_packet(CipherSuite suite);

}  // namespace nexar::quic
