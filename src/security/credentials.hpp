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

/// The algorithms of TLS that nexar speaks.
Result<PriorityHandle> make_priority();

/// Who we are and whom we believe: our key, our certificate, and the cluster CA's certificate, the
/// only one that is trusted. Immutable; shared by all sessions of a node, in any thread. A renewed
/// certificate is a new object; sessions keep the one that they began with.
class Credentials {
public:
    using Der = std::vector<std::byte>;

    /// An Error (bad_config) when the certificate is not one of this key and this CA. Validity is
    /// not looked at: it is the peer's clock that decides.
    static Result<std::shared_ptr<const Credentials>> create(KeyPair key, const Certificate& own,
                                                             Certificate ca);

    /// The same for a seed, which shows the CA's certificate too: a joiner knows only its hash.
    static Result<std::shared_ptr<const Credentials>> create_seed(KeyPair key,
                                                                  const Certificate& own,
                                                                  Certificate ca);

    /// Shows `chain`, whatever it is, or nothing when it is empty. What a peer that breaks the
    /// rules has: for tests of the other side.
    static Result<std::shared_ptr<const Credentials>> create_unchecked(KeyPair key,
                                                                       std::span<const Der> chain,
                                                                       Certificate ca);

    /// Empty ids when the certificate says none, which only create_unchecked() allows.
    const Identity& identity() const noexcept { return identity_; }
    /// Of our own certificate.
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
