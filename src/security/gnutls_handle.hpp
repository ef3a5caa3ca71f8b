#pragma once

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include <memory>
#include <nexar/error.hpp>
#include <span>
#include <string_view>
#include <type_traits>

namespace nexar::security {

/// Calls the GnuTLS function that frees a handle.
template <auto Free>
struct Freed {
    template <class T>
    void operator()(T* handle) const noexcept {
        Free(handle);
    }
};

template <class Native, auto Free>
using Handle = std::unique_ptr<std::remove_pointer_t<Native>, Freed<Free>>;

using SessionHandle = Handle<gnutls_session_t, gnutls_deinit>;
using PriorityHandle = Handle<gnutls_priority_t, gnutls_priority_deinit>;
using CredentialsHandle =
    Handle<gnutls_certificate_credentials_t, gnutls_certificate_free_credentials>;
using CertificateHandle = Handle<gnutls_x509_crt_t, gnutls_x509_crt_deinit>;
using PrivateKeyHandle = Handle<gnutls_x509_privkey_t, gnutls_x509_privkey_deinit>;
using PublicKeyHandle = Handle<gnutls_pubkey_t, gnutls_pubkey_deinit>;

/// Creates a handle with the GnuTLS function that allocates it; empty if memory is exhausted.
template <class Owner, auto Make>
Owner make_handle() {
    typename Owner::pointer native = nullptr;
    return Make(&native) < 0 ? Owner() : Owner(native);
}

/// The bytes in the form that GnuTLS reads; it does not write through the pointer.
gnutls_datum_t datum(std::span<const std::byte> bytes) noexcept;

/// Memory that GnuTLS allocated and we free.
class OwnedDatum {
public:
    OwnedDatum() noexcept = default;
    OwnedDatum(const OwnedDatum&) = delete;
    OwnedDatum& operator=(const OwnedDatum&) = delete;
    ~OwnedDatum() { gnutls_free(datum_.data); }

    gnutls_datum_t* out() noexcept { return &datum_; }
    std::span<const std::byte> bytes() const noexcept {
        return std::as_bytes(std::span(datum_.data, datum_.size));
    }
    std::span<std::byte> writable() noexcept {
        return std::as_writable_bytes(std::span(datum_.data, datum_.size));
    }

private:
    gnutls_datum_t datum_{};
};

/// The error of a GnuTLS call that failed although its input came from us: out_of_memory, or
/// unsupported with GnuTLS's message. `doing` completes "GnuTLS failed while ...".
Error library_error(std::string_view doing, int code);

}  // namespace nexar::security
