#pragma once

#include <nexar/result.hpp>
#include <string>
#include <vector>

#include "security/certificate.hpp"
#include "security/key_pair.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

/// What a certificate says, before somebody signs it. ClusterCa fills it as the cluster's profile
/// demands (docs/protocol.md, "Certificates"); a test may fill it in any other way.
struct CertificateSpec {
    PublicKey subject_key{};
    std::string subject{};            // common name, at most 64 bytes
    std::vector<std::string> uris{};  // subject alternative names
    Validity validity{};              // in whole seconds
    bool is_ca = false;
    unsigned key_usage = 0;               // bits GNUTLS_KEY_...
    std::vector<const char*> purposes{};  // GNUTLS_KP_...
};

/// Who signs: a key and the certificate that shows its name; without one the subject itself.
struct Signer {
    const KeyPair& key;
    const Certificate* certificate = nullptr;
};

/// The signed certificate as DER. All that is signed under one profile has one size: the serial
/// number is 16 random bytes of which the first is never 0 nor above 0x7f, and Ed25519 signatures
/// have 64 bytes.
Result<std::vector<std::byte>> sign_certificate(const CertificateSpec& spec, const Signer& signer);

}  // namespace nexar::security
