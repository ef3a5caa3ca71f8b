#pragma once

#include <nettle/aes.h>

#include <cstdint>
#include <span>
#include <variant>

#include "link/quic/packet_cipher.hpp"

namespace nexar::quic {

/// True if this processor has instructions for AES. Without them Nettle's AES uses lookup tables,
/// whose timing leaks parts of the key to processes on the same processor.
bool has_aes_instructions() noexcept;

/// The key of an AES suite in Nettle's form. Wiped when destroyed.
class AesBlock {
public:
    AesBlock(CipherSuite suite, std::span<const std::uint8_t> key);
    ~AesBlock();
    AesBlock(const AesBlock&) = delete;
    AesBlock& operator=(const AesBlock&) = delete;

    nettle_cipher_func* function() const noexcept { return function_; }
    /// The argument of `function()`.
    const void* context() const noexcept { return context_; }

    /// Encrypts one block, possibly in place.
    void encrypt(std::uint8_t* to,
                 std::span<const std::uint8_t, AES_BLOCK_SIZE> from) const noexcept;

private:
    std::variant<aes128_ctx, aes256_ctx> key_;
    nettle_cipher_func* function_ = nullptr;
    const void* context_ = nullptr;
};

}  // namespace nexar::quic
