#include "security/certificate.hpp"

#include <fmt/format.h>
#include <gnutls/crypto.h>

#include <array>
#include <ctime>
#include <optional>
#include <utility>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "base/try.hpp"
#include "security/der.hpp"
#include "security/digest.hpp"

namespace nexar::security {

namespace {

constexpr std::string_view kUriScheme = "nexar://";
constexpr std::string_view kSeedScheme = "nexar-seed://";
constexpr std::size_t kIncarnationDigits = 16;
constexpr std::size_t kUriBytes =
    kUriScheme.size() + ClusterId::kDigits + 1 + NodeId::kDigits + 1 + kIncarnationDigits;

Error malformed_certificate(std::string_view what) {
    return {Errc::malformed,
            fmt::format("the bytes are not an X.509 certificate in DER: {}", what)};
}

Result<CertificateHandle> parse(std::span<const std::byte> der) {
    auto handle = make_handle<CertificateHandle, gnutls_x509_crt_init>();
    if (!handle) return library_error("reading a certificate", GNUTLS_E_MEMORY_ERROR);
    const gnutls_datum_t input = datum(der);
    const int code = gnutls_x509_crt_import(handle.get(), &input, GNUTLS_X509_FMT_DER);
    if (code == GNUTLS_E_MEMORY_ERROR) return library_error("reading a certificate", code);
    if (code < 0) return malformed_certificate(gnutls_strerror(code));
    return handle;
}

Result<void> check_limits(std::span<const std::byte> der) {
    if (der.size() > Certificate::kMaxBytes) {
        return Error(Errc::limit_exceeded,
                     fmt::format("the certificate has {} bytes; allowed: at most {}", der.size(),
                                 Certificate::kMaxBytes));
    }
    const auto names = count_alternative_names(der, Certificate::kMaxNames);
    if (!names) return malformed_certificate("its structure is invalid");
    if (*names > Certificate::kMaxNames) {
        return Error(Errc::limit_exceeded,
                     fmt::format("the certificate has more than {} subject alternative names",
                                 Certificate::kMaxNames));
    }
    return {};
}

Result<Validity> validity_of(gnutls_x509_crt_t certificate) {
    const std::time_t first = gnutls_x509_crt_get_activation_time(certificate);
    const std::time_t last = gnutls_x509_crt_get_expiration_time(certificate);
    if (first == -1 || last == -1) return malformed_certificate("it has no validity period");
    return Validity{wall_time(first), wall_time(last)};
}

Error malformed_uri(std::string_view uri) {
    return {Errc::malformed,
            fmt::format(
                "{} does not name a node; allowed: {}CLUSTER/NODE/INCARNATION with 32, 32 and 16 "
                "digits of 0-9 and a-f",
                in_quotes(uri), kUriScheme)};
}

/// The URI at `index`; empty if the name there has another type, nullopt after the last name.
std::optional<std::string> uri_at(gnutls_x509_crt_t certificate, unsigned index) {
    std::string text(kUriBytes + 1, '\0');
    std::size_t size = text.size();
    int kind =
        gnutls_x509_crt_get_subject_alt_name(certificate, index, text.data(), &size, nullptr);
    if (kind == GNUTLS_E_SHORT_MEMORY_BUFFER) {
        // Longer than any nexar URI, but it may still claim to be one.
        text.resize(size);
        kind =
            gnutls_x509_crt_get_subject_alt_name(certificate, index, text.data(), &size, nullptr);
    }
    if (kind == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE) return std::nullopt;
    text.resize(kind == GNUTLS_SAN_URI ? size : 0);
    return text;
}

std::vector<std::string> uris_of(gnutls_x509_crt_t certificate, std::string_view scheme) {
    std::vector<std::string> uris;
    for (unsigned index = 0; index <= Certificate::kMaxNames; ++index) {
        auto uri = uri_at(certificate, index);
        if (!uri) break;
        if (uri->starts_with(scheme)) uris.push_back(*std::move(uri));
    }
    return uris;
}

}  // namespace

std::string identity_uri(const Identity& identity) {
    return fmt::format("{}{}/{}/{:016x}", kUriScheme, identity.cluster.to_hex(),
                       identity.node.to_hex(), identity.incarnation.value());
}

Result<Identity> parse_identity_uri(std::string_view uri) {
    if (uri.size() != kUriBytes || !uri.starts_with(kUriScheme)) return malformed_uri(uri);
    const std::string_view path = uri.substr(kUriScheme.size());
    const auto cluster = ClusterId::from_hex(path.substr(0, ClusterId::kDigits));
    const auto node = NodeId::from_hex(path.substr(ClusterId::kDigits + 1, NodeId::kDigits));
    std::array<std::byte, kIncarnationDigits / 2> incarnation{};
    const bool number =
        detail::from_hex_digits(path.substr(path.size() - kIncarnationDigits), incarnation);
    const bool separated =
        path[ClusterId::kDigits] == '/' && path[path.size() - kIncarnationDigits - 1] == '/';
    if (!cluster || !node || !number || !separated) return malformed_uri(uri);
    std::uint64_t value = 0;
    for (const std::byte b : incarnation) value = value * 256 + std::to_integer<std::uint64_t>(b);
    return Identity{*cluster, *node, Incarnation(value)};
}

std::string seed_uri(const ClusterId& cluster) {
    return fmt::format("{}{}", kSeedScheme, cluster.to_hex());
}

bool names_seed(gnutls_x509_crt_t certificate, const ClusterId& cluster) {
    return uris_of(certificate, kSeedScheme) == std::vector{seed_uri(cluster)};
}

std::vector<std::string> nexar_uris(gnutls_x509_crt_t certificate) {
    return uris_of(certificate, kUriScheme);
}

Result<Identity> identity_of(gnutls_x509_crt_t certificate) {
    const std::vector<std::string> uris = nexar_uris(certificate);
    if (uris.size() != 1) {
        return Error(Errc::malformed,
                     fmt::format("the certificate has {} subject alternative names of the form "
                                 "{}...; allowed: exactly one, which names the node",
                                 uris.size(), kUriScheme));
    }
    return parse_identity_uri(uris.front());
}

Result<Certificate> Certificate::from_der(std::span<const std::byte> der) {
    NEXAR_TRY(check_limits(der));
    NEXAR_TRY_VALUE(handle, parse(der));
    NEXAR_TRY_VALUE(validity, validity_of(handle.get()));
    return Certificate(std::vector<std::byte>(der.begin(), der.end()), validity);
}

Result<Certificate> Certificate::from_pem(std::string_view pem) {
    const gnutls_datum_t text = datum(std::as_bytes(std::span(pem)));
    OwnedDatum der;
    if (gnutls_pem_base64_decode2("CERTIFICATE", &text, der.out()) < 0) {
        return Error(
            Errc::malformed,
            "the text contains no certificate in PEM (BEGIN CERTIFICATE ... END CERTIFICATE)");
    }
    return from_der(der.bytes());
}

std::string Certificate::to_pem() const {
    const gnutls_datum_t input = datum(der_);
    OwnedDatum text;
    const int code = gnutls_pem_base64_encode2("CERTIFICATE", &input, text.out());
    NEXAR_ASSERT(code == 0, "base64 of a few kilobytes fails only if memory is exhausted");
    const auto bytes = text.bytes();
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<Identity> Certificate::identity() const {
    NEXAR_TRY_VALUE(handle, native());
    return identity_of(handle.get());
}

Fingerprint Certificate::fingerprint() const {
    return sha256(der_);
}

Result<PublicKey> Certificate::public_key() const {
    NEXAR_TRY_VALUE(handle, native());
    auto key = make_handle<PublicKeyHandle, gnutls_pubkey_init>();
    if (!key) return library_error("reading a public key", GNUTLS_E_MEMORY_ERROR);
    int code = gnutls_pubkey_import_x509(key.get(), handle.get(), 0);
    OwnedDatum spki;
    if (code >= 0) code = gnutls_pubkey_export2(key.get(), GNUTLS_X509_FMT_DER, spki.out());
    if (code < 0) return malformed_certificate(gnutls_strerror(code));
    return PublicKey::from_spki(spki.bytes());
}

Result<CertificateHandle> Certificate::native() const {
    return parse(der_);
}

}  // namespace nexar::security
