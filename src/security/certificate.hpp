#pragma once

#include <array>
#include <cstddef>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/identity.hpp"
#include "security/gnutls_handle.hpp"
#include "security/public_key.hpp"
#include "security/wall_time.hpp"

namespace nexar::security {

/// The first and the last second in which a certificate is valid.
struct Validity {
    WallTime not_before{};
    WallTime not_after{};

    friend bool operator==(const Validity&, const Validity&) noexcept = default;
};

/// SHA-256 of a certificate's DER.
using Fingerprint = std::array<std::byte, 32>;

/// The URI that names a node in its certificate: nexar://<32 digits: cluster>/<32 digits: node>/<16
/// digits: incarnation>, all lower-case hexadecimal. Each identity has exactly one form, and all
/// forms have the same length.
std::string identity_uri(const Identity& identity);

/// Fails with malformed for every text that identity_uri() does not produce.
Result<Identity> parse_identity_uri(std::string_view uri);

/// The additional URI in the certificate of a seed: nexar-seed://<cluster>.
std::string seed_uri(const ClusterId& cluster);
bool names_seed(gnutls_x509_crt_t certificate, const ClusterId& cluster);

/// The subject alternative names that are URIs with the scheme nexar. Examines at most
/// Certificate::kMaxNames + 1 names.
std::vector<std::string> nexar_uris(gnutls_x509_crt_t certificate);

/// The identity in the only URI with the scheme nexar; see Certificate::identity().
Result<Identity> identity_of(gnutls_x509_crt_t certificate);

/// An X.509 certificate that was parsed but not verified. Cheap to move; a copy copies the DER.
/// Several threads may call const members concurrently.
class Certificate {
public:
    /// The largest DER that from_der() accepts.
    static constexpr std::size_t kMaxBytes = std::size_t{16} * 1024;
    /// The maximum number of subject alternative names.
    static constexpr std::size_t kMaxNames = 8;

    /// Fails with malformed or limit_exceeded unless the bytes are exactly one certificate within
    /// the limits. Checks the limits before GnuTLS sees the bytes.
    static Result<Certificate> from_der(std::span<const std::byte> der);
    /// Reads the first certificate in the text.
    static Result<Certificate> from_pem(std::string_view pem);

    std::string to_pem() const;
    const std::vector<std::byte>& der() const noexcept { return der_; }

    /// The identity in the only URI with the scheme nexar among the subject alternative names.
    /// Fails with malformed if there is none, more than one, or a malformed one.
    Result<Identity> identity() const;

    const Validity& validity() const noexcept { return validity_; }
    Fingerprint fingerprint() const;

    /// Fails with malformed if it is not an Ed25519 key.
    Result<PublicKey> public_key() const;

    /// A parsed copy, for GnuTLS.
    Result<CertificateHandle> native() const;

    friend bool operator==(const Certificate& a, const Certificate& b) noexcept {
        return a.der_ == b.der_;
    }

private:
    Certificate(std::vector<std::byte> der, const Validity& validity) noexcept
        : der_(std::move(der)), validity_(validity) {}

    std::vector<std::byte> der_;
    Validity validity_;
};

}  // namespace nexar::security
