#include "link/quic/aes_block.hpp"

#include <openssl/crypto.h>
#if defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#include "base/assert.hpp"

namespace nexar::quic {

bool has_aes_instructions() noexcept {
#if defined(__aarch64__)
    return (getauxval(AT_HWCAP) & (HWCAP_AES | HWCAP_PMULL)) == (HWCAP_AES | HWCAP_PMULL);
#elif defined(__x86_64__)
    return __builtin_cpu_supports("aes") != 0 && __builtin_cpu_supports("pclmul") != 0;
#else
    return false;
#endif
}

AesBlock::AesBlock(CipherSuite suite, std::span<const std::uint8_t> key) {
    NEXAR_ASSERT(key.size() == key_bytes(suite));
    if (suite == CipherSuite::aes_128_gcm) {
        auto& context = key_.emplace<aes128_ctx>();
        aes128_set_encrypt_key(&context, key.data());
        function_ = reinterpret_cast<nettle_cipher_func*>(&aes128_encrypt);
        context_ = &context;
    } else {
        NEXAR_ASSERT(suite == CipherSuite::aes_256_gcm);
        auto& context = key_.emplace<aes256_ctx>();
        aes256_set_encrypt_key(&context, key.data());
        function_ = reinterpret_cast<nettle_cipher_func*>(&aes256_encrypt);
        context_ = &context;
    }
}

void AesBlock::encrypt(std::uint8_t* to,
                       std::span<const std::uint8_t, AES_BLOCK_SIZE> from) const noexcept {
    if (const auto* context = std::get_if<aes128_ctx>(&key_)) {
        aes128_encrypt(context, from.size(), to, from.data());
    } else if (const auto* longer = std::get_if<aes256_ctx>(&key_)) {
        aes256_encrypt(longer, from.size(), to, from.data());
    }
}

AesBlock::~AesBlock() {
    OPENSSL_cleanse(&key_, sizeof key_);
}

}  // namespace nexar::quic
