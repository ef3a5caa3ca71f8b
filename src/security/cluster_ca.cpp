#include "security/cluster_ca.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/try.hpp"
#include "security/certificate_spec.hpp"

namespace nexar::security {

namespace {

constexpr std::string_view kScheme = "nexar://";

std::string cluster_uri(const ClusterId& cluster) {
    return fmt::format("{}{}", kScheme, cluster.to_hex());
}

/// Certificates contain whole seconds.
Validity validity_from(WallTime now, std::chrono::seconds lifetime) {
    const auto start = std::chrono::floor<std::chrono::seconds>(now);
    return {start - ClusterCa::kBackdating, start + lifetime};
}

Error not_a_ca(std::string_view why) {
    return {Errc::bad_config,
            fmt::format("the certificate does not belong to a nexar cluster CA: {}; use the one "
                        "that was created together with this key",
                        why)};
}

}  // namespace

Result<ClusterId> cluster_of_ca(const Certificate& certificate) {
    NEXAR_TRY_VALUE(handle, certificate.native());
    unsigned is_ca = 0;
    unsigned critical = 0;
    if (gnutls_x509_crt_get_basic_constraints(handle.get(), &critical, &is_ca, nullptr) < 0 ||
        is_ca == 0) {
        return not_a_ca("it is not allowed to sign other certificates");
    }
    const std::vector<std::string> uris = nexar_uris(handle.get());
    if (uris.size() != 1) return not_a_ca("it has no name of the form nexar://CLUSTER");
    const auto cluster = ClusterId::from_hex(std::string_view(uris[0]).substr(kScheme.size()));
    if (!cluster) return not_a_ca(cluster.error().cause());
    return *cluster;
}

Result<ClusterCa> ClusterCa::create(const ClusterId& cluster, WallTime now) {
    NEXAR_TRY_VALUE(key, KeyPair::generate());
    return create(cluster, std::move(key), now);
}

Result<ClusterCa> ClusterCa::create(const ClusterId& cluster, KeyPair key, WallTime now) {
    const CertificateSpec spec{.subject_key = key.public_key(),
                               .subject = fmt::format("nexar cluster {}", cluster.to_hex()),
                               .uris = {cluster_uri(cluster)},
                               .validity = validity_from(now, kLifetime),
                               .is_ca = true,
                               .key_usage = GNUTLS_KEY_KEY_CERT_SIGN};
    NEXAR_TRY_VALUE(der, sign_certificate(spec, {.key = key}));
    NEXAR_TRY_VALUE(certificate, Certificate::from_der(der));
    return ClusterCa(cluster, std::move(key), std::move(certificate));
}

Result<ClusterCa> ClusterCa::restore(KeyPair key, Certificate certificate) {
    NEXAR_TRY_VALUE(cluster, cluster_of_ca(certificate));
    NEXAR_TRY_VALUE(public_key, certificate.public_key());
    if (public_key != key.public_key()) return not_a_ca("it is for another key");
    return ClusterCa(cluster, std::move(key), std::move(certificate));
}

Result<Certificate> ClusterCa::issue(const CertificateRequest& request, WallTime now) const {
    if (request.identity.cluster != cluster_) {
        return Error(
            Errc::invalid_argument,
            fmt::format("a certificate for a node of cluster {} was requested from the CA of "
                        "cluster {}",
                        request.identity.cluster.to_hex(), cluster_.to_hex()));
    }
    if (request.lifetime <= std::chrono::seconds(0) || request.lifetime > kMaxNodeLifetime) {
        return Error(Errc::invalid_argument,
                     fmt::format("a certificate for {} s was requested; allowed: 1 s to {} days",
                                 request.lifetime.count(), kMaxNodeLifetime.count() / 24));
    }
    Validity validity = validity_from(now, request.lifetime);
    const Validity& own = certificate_.validity();
    if (now < own.not_before || validity.not_after > own.not_after) {
        return Error(Errc::invalid_argument,
                     fmt::format("a certificate from {} to {} was requested, but the CA of cluster "
                                 "{} itself is valid from {} to {}",
                                 in_words(now), in_words(validity.not_after), cluster_.to_hex(),
                                 in_words(own.not_before), in_words(own.not_after)));
    }
    validity.not_before = std::max(validity.not_before, own.not_before);
    std::vector<std::string> uris{identity_uri(request.identity)};
    if (request.seed) uris.push_back(seed_uri(cluster_));
    const CertificateSpec spec{.subject_key = request.public_key,
                               .subject = request.identity.node.to_hex(),
                               .uris = std::move(uris),
                               .validity = validity,
                               .key_usage = GNUTLS_KEY_DIGITAL_SIGNATURE,
                               .purposes = {GNUTLS_KP_TLS_WWW_CLIENT, GNUTLS_KP_TLS_WWW_SERVER}};
    NEXAR_TRY_VALUE(der, sign_certificate(spec, {.key = key_, .certificate = &certificate_}));
    return Certificate::from_der(der);
}

}  // namespace nexar::security
