#include <openssl/evp.h>

#include <array>
#include <memory>
#include <nexar/error.hpp>
#include <vector>

#include "groups.hpp"
#include "measure.hpp"

namespace nexar::bench {

namespace {

constexpr std::size_t kBlock = std::size_t{64} << 10;

struct FreeContext {
    void operator()(EVP_CIPHER_CTX* context) const noexcept { EVP_CIPHER_CTX_free(context); }
};

}  // namespace

double aes_gb_per_s(double seconds) {
    const std::unique_ptr<EVP_CIPHER_CTX, FreeContext> context(EVP_CIPHER_CTX_new());
    const std::array<unsigned char, 16> key{1, 2, 3};
    std::array<unsigned char, 12> nonce{};
    std::array<unsigned char, 16> tag{};
    std::vector<unsigned char> block(kBlock, 7);
    bool fine = EVP_EncryptInit_ex(context.get(), EVP_aes_128_gcm(), nullptr, key.data(),
                                   nonce.data()) == 1;
    const double start = seconds_now();
    double passed = 0;
    double bytes = 0;
    while (fine && passed < seconds) {
        int size = 0;
        ++nonce[0];
        fine = EVP_EncryptInit_ex(context.get(), nullptr, nullptr, nullptr, nonce.data()) == 1 &&
               EVP_EncryptUpdate(context.get(), block.data(), &size, block.data(),
                                 static_cast<int>(kBlock)) == 1 &&
               EVP_EncryptFinal_ex(context.get(), block.data() + size, &size) == 1 &&
               EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG,
                                   static_cast<int>(tag.size()), tag.data()) == 1;
        keep(tag.data());
        bytes += kBlock;
        passed = seconds_now() - start;
    }
    if (!fine) throw Error(Errc::unsupported, "libcrypto cannot encrypt with AES-128-GCM");
    return bytes / passed * 1e-9;
}

}  // namespace nexar::bench
