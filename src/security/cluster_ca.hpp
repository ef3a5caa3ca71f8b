#pragma once

#include <chrono>
#include <nexar/result.hpp>

#include "base/identity.hpp"
#include "security/certificate.hpp"
#include "security/key_pair.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

/// What a certificate of a node shall say.
struct CertificateRequest {
    PublicKey public_key{};
    Identity identity{};
    std::chrono::seconds lifetime = std::chrono::hours(24);
    bool seed = false;  // joiners may tell it their tokens
};

/// The cluster whose CA this is the certificate of. An Error (bad_config) when it is none's. Who
/// signed it is not looked at.
Result<ClusterId> cluster_of_ca(const Certificate& certificate);

/// The one authority of a cluster: it says which key belongs to which node id and incarnation.
///
/// It does not know who asks: whoever calls issue() has checked that the request comes from the
/// holder of the key. Const calls may be made by several threads at once.
class ClusterCa {
public:
    /// How far certificates reach into the past, for nodes whose clocks are behind ours.
    static constexpr std::chrono::minutes kBackdating{10};
    static constexpr std::chrono::hours kLifetime{10 * 365 * 24};
    static constexpr std::chrono::hours kMaxNodeLifetime{90 * 24};

    /// A new key and its self-signed certificate.
    static Result<ClusterCa> create(const ClusterId& cluster, WallTime now);
    /// A self-signed certificate for this key.
    static Result<ClusterCa> create(const ClusterId& cluster, KeyPair key, WallTime now);

    /// From what was kept. An Error (bad_config) when key and certificate do not belong together or
    /// the certificate is not that of a cluster CA.
    static Result<ClusterCa> restore(KeyPair key, Certificate certificate);

    /// A certificate for client and server use, valid from kBackdating before `now` for `lifetime`
    /// after it. An Error (invalid_argument) when the cluster is another one, or the lifetime is
    /// not in (0, kMaxNodeLifetime] or is not within the CA's own.
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
