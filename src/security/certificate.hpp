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

/// From the first to the last second in which a certificate may be used.
struct Validity {
    WallTime not_before{};
    WallTime not_after{};

    friend bool operator==(const Validity&, const Validity&) noexcept = default;
};

/// SHA-256 of a certificate's DER.
using Fingerprint = std::array<std::byte, 32>;

/// The text of the URI that names a node in its certificate:
/// nexar://<32 digits: cluster>/<32 digits: node>/<16 digits: incarnation>, all lower-case
/// hexadecimal. One identity has one form, and all have the same length.
std::string identity_uri(const Identity& identity);

/// An Error (malformed) for every text that identity_uri() does not write.
Result<Identity> parse_identity_uri(std::string_view uri);

/// The text of the URI that a seed's certificate has beside its name: nexar-seed://<cluster>.
std::string seed_uri(const ClusterId& cluster);
bool names_seed(gnutls_x509_crt_t certificate, const ClusterId& cluster);

/// The texts of the URIs among the subject alternative names that have the scheme nexar. A
/// certificate is looked at as far as Certificate::kMaxNames.
std::vector<std::string> nexar_uris(gnutls_x509_crt_t certificate);

/// From the one URI of the scheme nexar; see Certificate::identity().
Result<Identity> identity_of(gnutls_x509_crt_t certificate);

/// An X.509 certificate that was parsed and not yet believed. A value: cheap to move, copies its
/// DER. Const calls may be made by several threads at once.
class Certificate {
public:
    /// The largest DER that is looked at.
    static constexpr std::size_t kMaxBytes = std::size_t{16} * 1024;
    /// The most subject alternative names that a certificate may have.
    static constexpr std::size_t kMaxNames = 8;

    /// An Error (malformed, limit_exceeded) when these bytes and no others are not one certificate
    /// within the limits, which are checked before GnuTLS sees the bytes.
    static Result<Certificate> from_der(std::span<const std::byte> der);
    /// The first certificate of the text.
    static Result<Certificate> from_pem(std::string_view pem);

    std::string to_pem() const;
    const std::vector<std::byte>& der() const noexcept { return der_; }

    /// From the one URI of the scheme nexar among the subject alternative names; an Error
    /// (malformed) when there is none, more than one, or one that is not well-formed.
    Result<Identity> identity() const;

    const Validity& validity() const noexcept { return validity_; }
    Fingerprint fingerprint() const;

    /// An Error (malformed) when it is not an Ed25519 key.
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
