#include "support/test_cluster.hpp"

#include <chrono>
#include <utility>

#include "base/random.hpp"
#include "security/random_id.hpp"

namespace nexar::testing {

namespace {

using namespace std::chrono_literals;
using security::CertificateSpec;
using security::ClusterCa;
using security::Credentials;
using security::KeyPair;
using security::Validity;

KeyPair new_key() {
    return KeyPair::generate().value();
}

KeyPair copy_of(const KeyPair& key) {
    return KeyPair::from_pem(key.to_pem().value()).value();
}

/// Applies a flaw that changes the content of the node's certificate.
CertificateSpec with_flaw(CertificateSpec spec, Flaw flaw, security::WallTime now) {
    switch (flaw) {
        case Flaw::expired:
            spec.validity = {now - 96h, now - 48h};
            break;
        case Flaw::just_expired:
            spec.validity = {now - 24h, now - 10min};
            break;
        case Flaw::not_yet_valid:
            spec.validity = {now + 2h, now + 26h};
            break;
        case Flaw::other_cluster:
            spec.uris = {security::identity_uri({.cluster = security::new_cluster_id().value(),
                                                 .node = TestCluster::node_id(1),
                                                 .incarnation = Incarnation(1)})};
            break;
        case Flaw::too_many_names:
            for (int i = 0; i < 8; ++i) spec.uris.push_back("https://n" + std::to_string(i));
            break;
        case Flaw::ca_flag:
            spec.is_ca = true;
            break;
        case Flaw::no_purpose:
            spec.purposes.clear();
            break;
        case Flaw::other_purpose:
            spec.purposes = {GNUTLS_KP_CODE_SIGNING};
            break;
        case Flaw::no_signing:
            spec.key_usage = GNUTLS_KEY_KEY_AGREEMENT;
            break;
        case Flaw::no_name:
            spec.uris = {"https://node7"};
            break;
        case Flaw::two_names:
            spec.uris.push_back(spec.uris.front());
            break;
        case Flaw::malformed_name:
            spec.uris.front().back() = 'F';
            break;
        default:
            break;
    }
    return spec;
}

}  // namespace

std::string_view name(Flaw flaw) noexcept {
    constexpr std::array<std::string_view, kAllFlaws.size()> kNames{"no_certificate",
                                                                    "foreign_ca",
                                                                    "foreign_chain",
                                                                    "impostor_ca",
                                                                    "expired",
                                                                    "just_expired",
                                                                    "not_yet_valid",
                                                                    "other_cluster",
                                                                    "three_certificates",
                                                                    "oversized_chain",
                                                                    "oversized_certificate",
                                                                    "too_many_names",
                                                                    "ca_as_node",
                                                                    "ca_flag",
                                                                    "no_purpose",
                                                                    "other_purpose",
                                                                    "no_signing",
                                                                    "no_name",
                                                                    "two_names",
                                                                    "malformed_name",
                                                                    "stolen"};
    return kNames[static_cast<std::size_t>(flaw)];
}

TestCluster::TestCluster(security::WallTime now)
    : now_(now),
      // Old enough that expired certificates are not older than their CA.
      ca_(ClusterCa::create(security::new_cluster_id().value(), now - 240h).value()) {}

NodeId TestCluster::node_id(std::uint64_t index) noexcept {
    SplitMix64 numbers(index);
    std::array<std::byte, NodeId::kBytes> bytes{};
    for (std::byte& b : bytes) b = static_cast<std::byte>(numbers.next() & 0xffU);
    return NodeId(bytes);
}

Identity TestCluster::identity(std::uint64_t index) const noexcept {
    return {.cluster = id(), .node = node_id(index), .incarnation = Incarnation(1)};
}

SharedCredentials TestCluster::node(std::uint64_t index) const {
    KeyPair key = new_key();
    const auto certificate =
        ca_.issue({.public_key = key.public_key(), .identity = identity(index)}, now_).value();
    return Credentials::create(std::move(key), certificate, ca_.certificate()).value();
}

CertificateSpec TestCluster::node_spec(std::uint64_t index, const KeyPair& key) const {
    const auto start = std::chrono::floor<std::chrono::seconds>(now_);
    return {.subject_key = key.public_key(),
            .subject = node_id(index).to_hex(),
            .uris = {security::identity_uri(identity(index))},
            .validity = Validity{start - ClusterCa::kBackdating, start + 24h},
            .key_usage = GNUTLS_KEY_DIGITAL_SIGNATURE,
            .purposes = {GNUTLS_KP_TLS_WWW_CLIENT, GNUTLS_KP_TLS_WWW_SERVER}};
}

TestCluster::Der TestCluster::sign(const CertificateSpec& spec) const {
    return security::sign_certificate(spec, {.key = ca_.key(), .certificate = &ca_.certificate()})
        .value();
}

SharedCredentials TestCluster::shown(KeyPair key, const std::vector<Der>& chain) const {
    return Credentials::create_unchecked(std::move(key), chain, ca_.certificate()).value();
}

SharedCredentials TestCluster::showing(CertificateSpec spec, KeyPair key) const {
    spec.subject_key = key.public_key();
    return shown(std::move(key), {sign(spec)});
}

SharedCredentials TestCluster::of_foreign_ca(const ClusterId& cluster, std::uint64_t index,
                                             bool with_ca) const {
    const ClusterCa other = ClusterCa::create(cluster, now_).value();
    KeyPair key = new_key();
    const auto certificate = other
                                 .issue({.public_key = key.public_key(),
                                         .identity = {cluster, node_id(index), Incarnation(1)}},
                                        now_)
                                 .value();
    std::vector<Der> chain{certificate.der()};
    if (with_ca) chain.push_back(other.certificate().der());
    return shown(std::move(key), chain);
}

SharedCredentials TestCluster::oversized(std::uint64_t index, std::size_t padding_bytes,
                                         std::size_t certificates) const {
    KeyPair key = new_key();
    CertificateSpec spec = node_spec(index, key);
    spec.uris.push_back("https://" + std::string(padding_bytes, 'x'));
    const std::vector<Der> chain(certificates, sign(spec));
    return shown(std::move(key), chain);
}

SharedCredentials TestCluster::flawed(Flaw flaw, std::uint64_t index) const {
    KeyPair key = new_key();
    CertificateSpec spec = node_spec(index, key);
    switch (flaw) {
        case Flaw::no_certificate:
            return shown(std::move(key), {});
        case Flaw::foreign_ca:
            return of_foreign_ca(security::new_cluster_id().value(), index, false);
        case Flaw::foreign_chain:
            return of_foreign_ca(security::new_cluster_id().value(), index, true);
        case Flaw::impostor_ca:
            return of_foreign_ca(id(), index, false);
        case Flaw::three_certificates: {
            const Der& ca = ca_.certificate().der();
            return shown(std::move(key), {sign(spec), ca, ca});
        }
        case Flaw::oversized_chain:
            return oversized(index, 9000, 2);
        case Flaw::oversized_certificate:
            return oversized(index, 15'900, 1);
        case Flaw::stolen:
            return shown(new_key(), {sign(spec)});
        case Flaw::ca_as_node:
            return shown(copy_of(ca_.key()), {ca_.certificate().der()});
        default:
            return showing(with_flaw(std::move(spec), flaw, now_), std::move(key));
    }
}

}  // namespace nexar::testing
