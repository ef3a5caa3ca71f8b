#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/identity.hpp"
#include "security/certificate_spec.hpp"
#include "security/cluster_ca.hpp"
#include "security/credentials.hpp"

namespace nexar::testing {

/// The ways in which a peer's certificate can be wrong.
enum class Flaw : std::uint8_t {
    no_certificate,
    foreign_ca,             // by another cluster's CA, presented alone
    foreign_chain,          // the same, followed by that CA's certificate
    impostor_ca,            // by a CA with the name of ours and another key
    expired,                // two days ago
    just_expired,           // ten minutes ago
    not_yet_valid,          // valid in two hours
    other_cluster,          // signed by our CA, for another cluster
    three_certificates,     // the node's, the CA's, and the CA's again
    oversized_chain,        // two certificates, together above 16 KiB
    oversized_certificate,  // one, above 16 KiB including its overhead
    too_many_names,         // nine subject alternative names
    ca_as_node,             // the CA's own certificate and key
    ca_flag,                // a node certificate that may sign others
    no_purpose,             // no extended key usage
    other_purpose,          // for signing code
    no_signing,             // a key for key agreement only
    no_name,                // no nexar URI
    two_names,              // two nexar URIs
    malformed_name,         // a nexar URI that names no node
    stolen,                 // a valid certificate, but another key
};

inline constexpr std::array kAllFlaws{
    Flaw::no_certificate,
    Flaw::foreign_ca,
    Flaw::foreign_chain,
    Flaw::impostor_ca,
    Flaw::expired,
    Flaw::just_expired,
    Flaw::not_yet_valid,
    Flaw::other_cluster,
    Flaw::three_certificates,
    Flaw::oversized_chain,
    Flaw::oversized_certificate,
    Flaw::too_many_names,
    Flaw::ca_as_node,
    Flaw::ca_flag,
    Flaw::no_purpose,
    Flaw::other_purpose,
    Flaw::no_signing,
    Flaw::no_name,
    Flaw::two_names,
    Flaw::malformed_name,
    Flaw::stolen,
};

std::string_view name(Flaw flaw) noexcept;

using SharedCredentials = std::shared_ptr<const security::Credentials>;

/// A cluster CA and credentials for any number of its nodes, created within milliseconds. Failures
/// throw nexar::Error.
class TestCluster {
public:
    using Der = security::Credentials::Der;

    /// `now` is the time at which all certificates are issued: the machine's time for tests with
    /// real clocks.
    explicit TestCluster(security::WallTime now = std::chrono::system_clock::now());

    const ClusterId& id() const noexcept { return ca_.cluster(); }
    const security::ClusterCa& ca() const noexcept { return ca_; }
    security::WallTime now() const noexcept { return now_; }

    /// The same in every cluster and run.
    static NodeId node_id(std::uint64_t index) noexcept;
    Identity identity(std::uint64_t index) const noexcept;

    /// The credentials of a node, incarnation 1; new ones with each call.
    SharedCredentials node(std::uint64_t index) const;

    /// The credentials of a node that trusts our CA but presents something that nobody should
    /// accept.
    SharedCredentials flawed(Flaw flaw, std::uint64_t index = 7) const;

    /// Credentials with a certificate for `spec`, signed by our CA.
    SharedCredentials showing(security::CertificateSpec spec, security::KeyPair key) const;

    /// What issue() would certify for the node; a starting point for a flawed certificate.
    security::CertificateSpec node_spec(std::uint64_t index, const security::KeyPair& key) const;

private:
    SharedCredentials shown(security::KeyPair key, const std::vector<Der>& chain) const;
    SharedCredentials of_foreign_ca(const ClusterId& cluster, std::uint64_t index,
                                    bool with_ca) const;
    SharedCredentials oversized(std::uint64_t index, std::size_t padding_bytes,
                                std::size_t certificates) const;
    Der sign(const security::CertificateSpec& spec) const;

    security::WallTime now_;
    security::ClusterCa ca_;
};

}  // namespace nexar::testing
