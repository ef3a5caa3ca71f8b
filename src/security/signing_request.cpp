#include "security/signing_request.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>

#include "base/identity.hpp"
#include "base/secret.hpp"
#include "base/try.hpp"
#include "security/gnutls_handle.hpp"

namespace nexar::security {

namespace {

using RequestHandle = Handle<gnutls_x509_crq_t, gnutls_x509_crq_deinit>;

Error malformed_request(int code) {
    return {Errc::malformed, fmt::format("the bytes are not a PKCS#10 signing request in DER: {}",
                                         gnutls_strerror(code))};
}

Result<PublicKey> key_of(gnutls_x509_crq_t request) {
    auto key = make_handle<PublicKeyHandle, gnutls_pubkey_init>();
    if (!key) return library_error("reading a signing request", GNUTLS_E_MEMORY_ERROR);
    OwnedDatum spki;
    int code = gnutls_pubkey_import_x509_crq(key.get(), request, 0);
    if (code >= 0) code = gnutls_pubkey_export2(key.get(), GNUTLS_X509_FMT_DER, spki.out());
    if (code < 0) return malformed_request(code);
    return PublicKey::from_spki(spki.bytes());
}

/// The challengePassword (RFC 2985 section 5.4.1) contains the binding as hexadecimal digits.
bool is_bound_to(gnutls_x509_crq_t request, std::span<const std::byte> binding) {
    std::array<char, 2 * SigningRequest::kBindingBytes + 1> text{};
    std::size_t size = text.size();
    if (gnutls_x509_crq_get_challenge_password(request, text.data(), &size) < 0) return false;
    const auto given = std::as_bytes(std::span(text)).first(text.size() - 1);
    const std::string wanted = detail::hex_digits(binding);
    return Secret(given) == Secret(std::as_bytes(std::span(wanted)));
}

}  // namespace

Result<SigningRequest> SigningRequest::create(const KeyPair& key,
                                              std::span<const std::byte, kBindingBytes> binding) {
    auto request = make_handle<RequestHandle, gnutls_x509_crq_init>();
    if (!request) return library_error("making a signing request", GNUTLS_E_MEMORY_ERROR);
    const std::string text = detail::hex_digits(binding);
    int code = gnutls_x509_crq_set_version(request.get(), 1);
    if (code >= 0) code = gnutls_x509_crq_set_key(request.get(), key.native());
    if (code >= 0) code = gnutls_x509_crq_set_challenge_password(request.get(), text.c_str());
    if (code >= 0) {
        code = gnutls_x509_crq_sign2(request.get(), key.native(), GNUTLS_DIG_SHA512, 0);
    }
    OwnedDatum der;
    if (code >= 0) code = gnutls_x509_crq_export2(request.get(), GNUTLS_X509_FMT_DER, der.out());
    if (code < 0) return library_error("making a signing request", code);
    return SigningRequest({der.bytes().begin(), der.bytes().end()}, key.public_key());
}

Result<SigningRequest> SigningRequest::from_der(std::span<const std::byte> der,
                                                std::span<const std::byte, kBindingBytes> binding) {
    if (der.size() > kMaxBytes) {
        return Error(Errc::limit_exceeded,
                     fmt::format("the signing request has {} bytes; allowed: at most {}",
                                 der.size(), kMaxBytes));
    }
    auto request = make_handle<RequestHandle, gnutls_x509_crq_init>();
    if (!request) return library_error("reading a signing request", GNUTLS_E_MEMORY_ERROR);
    const gnutls_datum_t input = datum(der);
    const int code = gnutls_x509_crq_import(request.get(), &input, GNUTLS_X509_FMT_DER);
    if (code < 0) return malformed_request(code);
    NEXAR_TRY_VALUE(key, key_of(request.get()));
    if (gnutls_x509_crq_verify(request.get(), 0) < 0) {
        return Error(Errc::unauthenticated,
                     "the signing request was not signed with the key that it contains");
    }
    if (!is_bound_to(request.get(), binding)) {
        return Error(Errc::unauthenticated, "the signing request was made for another connection");
    }
    return SigningRequest({der.begin(), der.end()}, key);
}

}  // namespace nexar::security
