#pragma once

#include <nettle/aes.h>

#include <cstdint>
#include <span>
#include <variant>

#include "link/quic/packet_cipher.hpp"

namespace nexar::quic {

/// Whether this processor has instructions for AES. Nettle's AES without them looks bytes up in
/// tables, and the time that takes tells something of the key to who shares the processor.
bool has_aes_instructions() noexcept;

/// The key of an AES suite, as Nettle wants it. Wiped at its end.
class AesBlock {
public:
    AesBlock(CipherSuite suite, std::span<const std::uint8_t> key);
    ~AesBlock();
    AesBlock(const AesBlock&) = delete;
    AesBlock& operator=(const AesBlock&) = delete;

    nettle_cipher_func* function() const noexcept { return function_; }
    /// What `function()` takes.
    const void* context() const noexcept { return context_; }

    /// One block, which may be encrypted where it stands.
    void encrypt(std::uint8_t* to,
                 std::span<const std::uint8_t, AES_BLOCK_SIZE> from) const noexcept;

private:
    std::variant<aes128_ctx, aes256_ctx> key_;
    nettle_cipher_func* function_ = nullptr;
    const void* context_ = nullptr;
};

}  // namespace nexar::quic
