#include "security/digest.hpp"

#include <gnutls/crypto.h>

#include "base/assert.hpp"

namespace nexar::security {

Digest sha256(std::span<const std::byte> bytes) {
    Digest digest{};
    const int code = gnutls_hash_fast(GNUTLS_DIG_SHA256, bytes.data(), bytes.size(), digest.data());
    NEXAR_ASSERT(code == 0, "SHA-256 of bytes in memory cannot fail");
    return digest;
}

}  // namespace nexar::security
