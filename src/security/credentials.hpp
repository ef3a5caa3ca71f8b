#pragma once

#include <cstddef>
#include <memory>
#include <nexar/result.hpp>
#include <span>
#include <vector>

#include "base/identity.hpp"
#include "security/certificate.hpp"
#include "security/gnutls_handle.hpp"
#include "security/key_pair.hpp"

namespace nexar::security {

/// The TLS algorithms that nexar allows.
Result<PriorityHandle> make_priority();

/// Our key, our certificate, and the certificate of the cluster CA, the only one that we trust.
/// Immutable; all sessions of a node share it, in any thread. A renewed certificate is a new
/// object; existing sessions keep the old one.
class Credentials {
public:
    using Der = std::vector<std::byte>;

    /// Fails with bad_config if the certificate does not belong to this key and this CA. Does not
    /// check validity, because the clock of the peer decides.
    static Result<std::shared_ptr<const Credentials>> create(KeyPair key, const Certificate& own,
                                                             Certificate ca);

    /// The same for a seed, which also presents the CA's certificate: a joiner knows only its hash.
    static Result<std::shared_ptr<const Credentials>> create_seed(KeyPair key,
                                                                  const Certificate& own,
                                                                  Certificate ca);

    /// Presents `chain`, whatever it contains, or no certificate if it is empty. For tests that
    /// need a misbehaving peer.
    static Result<std::shared_ptr<const Credentials>> create_unchecked(KeyPair key,
                                                                       std::span<const Der> chain,
                                                                       Certificate ca);

    /// The ids are empty if the certificate has none, which only create_unchecked() allows.
    const Identity& identity() const noexcept { return identity_; }
    /// The validity of our own certificate.
    const Validity& validity() const noexcept { return validity_; }
    const KeyPair& key() const noexcept { return key_; }
    const Certificate& ca() const noexcept { return ca_; }

    /// For GnuTLS, which only reads them.
    gnutls_certificate_credentials_t native() const noexcept { return native_.get(); }
    gnutls_x509_crt_t native_ca() const noexcept { return native_ca_.get(); }
    gnutls_priority_t priority() const noexcept { return priority_.get(); }

private:
    Credentials(KeyPair key, Certificate ca) noexcept : key_(std::move(key)), ca_(std::move(ca)) {}

    static Result<std::shared_ptr<const Credentials>> create_checked(KeyPair key,
                                                                     const Certificate& own,
                                                                     Certificate ca,
                                                                     std::span<const Der> chain);
    static Result<std::shared_ptr<Credentials>> prepare(KeyPair key, std::span<const Der> chain,
                                                        Certificate ca);
    Result<void> set_chain(std::span<const Der> chain);

    KeyPair key_;
    Certificate ca_;
    Identity identity_{};
    Validity validity_{};
    CertificateHandle native_ca_;
    PriorityHandle priority_;
    CredentialsHandle native_;
};

}  // namespace nexar::security
