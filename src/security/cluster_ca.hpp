#pragma once

#include <chrono>
#include <nexar/result.hpp>

#include "base/identity.hpp"
#include "security/certificate.hpp"
#include "security/key_pair.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

/// What the certificate of a node is to contain.
struct CertificateRequest {
    PublicKey public_key{};
    Identity identity{};
    std::chrono::seconds lifetime = std::chrono::hours(24);
    bool seed = false;  // joiners may send it their tokens
};

/// The cluster that this CA certificate belongs to. Fails with bad_config if it is not the
/// certificate of a cluster CA. Does not check who signed it.
Result<ClusterId> cluster_of_ca(const Certificate& certificate);

/// The certificate authority of a cluster: it certifies which key belongs to which node id and
/// incarnation.
///
/// It does not authenticate requests: the caller of issue() must have verified that the request
/// comes from the holder of the key. Several threads may call const members concurrently.
class ClusterCa {
public:
    /// Certificates become valid this long before they are issued, for nodes whose clocks are
    /// behind.
    static constexpr std::chrono::minutes kBackdating{10};
    static constexpr std::chrono::hours kLifetime{10 * 365 * 24};
    static constexpr std::chrono::hours kMaxNodeLifetime{90 * 24};

    /// Generates a new key and its self-signed certificate.
    static Result<ClusterCa> create(const ClusterId& cluster, WallTime now);
    /// Creates a self-signed certificate for this key.
    static Result<ClusterCa> create(const ClusterId& cluster, KeyPair key, WallTime now);

    /// Restores a CA from storage. Fails with bad_config if key and certificate do not belong
    /// together or the certificate is not that of a cluster CA.
    static Result<ClusterCa> restore(KeyPair key, Certificate certificate);

    /// Issues a certificate for client and server use, valid from `now` - kBackdating to `now` +
    /// lifetime. Fails with invalid_argument if the identity belongs to another cluster, or if the
    /// lifetime is not in (0, kMaxNodeLifetime] or exceeds that of the CA.
    Result<Certificate> issue(const CertificateRequest& request, WallTime now) const;

    const ClusterId& cluster() const noexcept { return cluster_; }
    const Certificate& certificate() const noexcept { return certificate_; }
    const KeyPair& key() const noexcept { return key_; }

private:
    ClusterCa(const ClusterId& cluster, KeyPair key, Certificate certificate) noexcept
        : cluster_(cluster), key_(std::move(key)), certificate_(std::move(certificate)) {}

    ClusterId cluster_;
    KeyPair key_;
    Certificate certificate_;
};

}  // namespace nexar::security
