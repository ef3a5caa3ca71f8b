#pragma once

#include <memory>
#include <nexar/result.hpp>

#include "base/identity.hpp"
#include "security/certificate.hpp"
#include "security/gnutls_handle.hpp"
#include "security/key_pair.hpp"

namespace nexar::security {

/// Who we are and whom we believe: our key, our certificate, and the cluster CA's certificate, the
/// only one that is trusted. Immutable; shared by all sessions of a node, in any thread. A renewed
/// certificate is a new object; sessions keep the one that they began with.
class Credentials {
public:
    /// An Error (bad_config) when the certificate is not one of this key and this CA. Validity is
    /// not looked at: it is the peer's clock that decides.
    static Result<std::shared_ptr<const Credentials>> create(KeyPair key, Certificate own,
                                                             Certificate ca);

    const Identity& identity() const noexcept { return identity_; }
    const Certificate& certificate() const noexcept { return certificate_; }
    const Certificate& ca() const noexcept { return ca_; }

    /// For GnuTLS, which only reads them.
    gnutls_certificate_credentials_t native() const noexcept { return native_.get(); }
    gnutls_x509_crt_t native_ca() const noexcept { return native_ca_.get(); }
    gnutls_priority_t priority() const noexcept { return priority_.get(); }

private:
    struct Parts;
    explicit Credentials(Parts parts) noexcept;

    KeyPair key_;
    Certificate certificate_;
    Certificate ca_;
    Identity identity_;
    CertificateHandle native_ca_;
    PriorityHandle priority_;
    CredentialsHandle native_;
};

}  // namespace nexar::security
