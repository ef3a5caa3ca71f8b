#pragma once

#include <nexar/result.hpp>
#include <string>
#include <vector>

#include "security/certificate.hpp"
#include "security/key_pair.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

/// The content of a certificate before it is signed. ClusterCa fills it in as the cluster's profile
/// requires (docs/protocol.md, "Certificates"); tests may fill it in differently.
struct CertificateSpec {
    PublicKey subject_key{};
    std::string subject{};            // common name, at most 64 bytes
    std::vector<std::string> uris{};  // subject alternative names
    Validity validity{};              // in whole seconds
    bool is_ca = false;
    unsigned key_usage = 0;               // bits GNUTLS_KEY_...
    std::vector<const char*> purposes{};  // GNUTLS_KP_...
};

/// The key that signs and the certificate that names the signer; without one the certificate is
/// self-signed.
struct Signer {
    const KeyPair& key;
    const Certificate* certificate = nullptr;
};

/// Returns the signed certificate as DER. All certificates of one profile have the same size: the
/// serial number has 16 random bytes, of which the first is from 0x40 to 0x7f, and an Ed25519
/// signature has 64 bytes.
Result<std::vector<std::byte>> sign_certificate(const CertificateSpec& spec, const Signer& signer);

}  // namespace nexar::security
