#include "security/peer_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "base/printable.hpp"
#include "security/cluster_ca.hpp"

namespace nexar::security {

namespace {

using Verdict = std::optional<Refusal>;

/// A certificate that expired less than this ago may be a late renewal or a wrong clock:
/// unsynchronised clocks drift apart by about this much in months.
constexpr std::chrono::hours kClockDoubt{1};

/// What a certificate is checked against, for every kind of peer.
struct Measures {
    gnutls_x509_crt_t ca = nullptr;
    std::optional<Validity> own{};  // of our own certificate, if we have one
    Expectation expected{};
    Role peer_role = Role::server;
    WallTime now{};
};

/// The peer's own certificate and its description in messages.
struct Leaf {
    Certificate certificate;
    CertificateHandle native;
    std::string words;  // "the peer's certificate (subject ..., issuer ...)"
};

using NameReader = int (*)(gnutls_x509_crt_t, gnutls_datum_t*, unsigned);

std::string read_name(NameReader read, gnutls_x509_crt_t certificate) {
    OwnedDatum text;
    if (read(certificate, text.out(), 0) < 0) return "none";
    const auto bytes = text.bytes();
    return in_quotes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

std::string subject_of(gnutls_x509_crt_t certificate) {
    return read_name(gnutls_x509_crt_get_dn3, certificate);
}

Refusal undecodable(const Error& error) {
    return {Alert::bad_certificate, "your certificate is malformed",
            fmt::format("the peer's certificate cannot be used: {}", error.cause())};
}

Checked<Leaf> read_leaf(std::span<const std::byte> der) {
    auto certificate = Certificate::from_der(der);
    if (!certificate) return undecodable(certificate.error());
    auto native = certificate->native();
    if (!native) return undecodable(native.error());
    std::string words =
        fmt::format("the peer's certificate (subject {}, issuer {})", subject_of(native->get()),
                    read_name(gnutls_x509_crt_get_issuer_dn3, native->get()));
    return Leaf{*std::move(certificate), *std::move(native), std::move(words)};
}

Verdict check_algorithms(const Leaf& leaf, const Measures&) {
    const int key = gnutls_x509_crt_get_pk_algorithm(leaf.native.get(), nullptr);
    const int signature = gnutls_x509_crt_get_signature_algorithm(leaf.native.get());
    if (key == GNUTLS_PK_EDDSA_ED25519 && signature == GNUTLS_SIGN_EDDSA_ED25519) {
        return std::nullopt;
    }
    const char* const algorithm =
        gnutls_sign_get_name(static_cast<gnutls_sign_algorithm_t>(signature));
    return Refusal(
        Alert::unsupported_certificate, "your certificate is not Ed25519",
        fmt::format("{} has a {} key and is signed with {}; allowed: Ed25519 for both", leaf.words,
                    gnutls_pk_get_name(static_cast<gnutls_pk_algorithm_t>(key)),
                    algorithm == nullptr ? "an unknown algorithm" : algorithm));
}

Refusal foreign(const Leaf& leaf, const Measures& rules) {
    return {Alert::unknown_ca,
            fmt::format("your certificate was not issued by the CA of cluster {}",
                        rules.expected.cluster.to_hex()),
            fmt::format("{} was not issued by the CA that this node trusts, {}; it belongs to "
                        "another cluster, or the cluster was created again since it joined",
                        leaf.words, subject_of(rules.ca))};
}

/// GnuTLS would use the clock of the host; check_time() checks the time instead.
constexpr unsigned kChainFlags = GNUTLS_VERIFY_DISABLE_TIME_CHECKS |
                                 GNUTLS_VERIFY_DISABLE_TRUSTED_TIME_CHECKS |
                                 GNUTLS_VERIFY_DO_NOT_ALLOW_X509_V1_CA_CRT;

Verdict check_chain(const Leaf& leaf, const Measures& rules) {
    gnutls_x509_crt_t native = leaf.native.get();
    gnutls_x509_crt_t ca = rules.ca;
    unsigned status = 0;
    const int code =
        gnutls_x509_crt_list_verify(&native, 1, &ca, 1, nullptr, 0, kChainFlags, &status);
    if (code >= 0 && status == 0) return std::nullopt;
    if (code >= 0 && (status & GNUTLS_CERT_SIGNATURE_FAILURE) == 0) return foreign(leaf, rules);
    return Refusal(Alert::bad_certificate, "the signature of your certificate is wrong",
                   fmt::format("{} names the CA that this node trusts, {}, as its issuer, but is "
                               "not signed by its key",
                               leaf.words, subject_of(rules.ca)));
}

std::string clock_advice(const Leaf& leaf, const Measures& rules) {
    const Validity& shown = leaf.certificate.validity();
    if (rules.own && (rules.now < rules.own->not_before || rules.now > rules.own->not_after)) {
        return "our own certificate is not valid at that time either: check the clocks, first that "
               "of "
               "this host";
    }
    if (rules.now < shown.not_before || rules.now - shown.not_after < kClockDoubt) {
        return "check the clocks of both hosts and of the seed's host";
    }
    return "the peer must renew it";
}

Verdict check_time(const Leaf& leaf, const Measures& rules) {
    const Validity& valid = leaf.certificate.validity();
    if (rules.now >= valid.not_before && rules.now <= valid.not_after) return std::nullopt;
    const bool early = rules.now < valid.not_before;
    const std::string now = in_words(rules.now);
    const std::string edge = in_words(early ? valid.not_before : valid.not_after);
    const std::string off =
        in_words(early ? valid.not_before - rules.now : rules.now - valid.not_after);
    // RFC 8446 section 6.2: certificate_expired is for "not currently valid", in both directions.
    return Refusal(
        Alert::certificate_expired,
        fmt::format("your certificate is valid {} {}; my clock says {}: check the clocks",
                    early ? "from" : "until", edge, now),
        fmt::format("{} is {}: it is valid from {} to {}, and this host's clock says {}, {} too "
                    "{}; {}",
                    leaf.words, early ? "not yet valid" : "expired", in_words(valid.not_before),
                    in_words(valid.not_after), now, off, early ? "early" : "late",
                    clock_advice(leaf, rules)));
}

Verdict check_not_ca(const Leaf& leaf, const Measures&) {
    unsigned critical = 0;
    unsigned is_ca = 0;
    const int code =
        gnutls_x509_crt_get_basic_constraints(leaf.native.get(), &critical, &is_ca, nullptr);
    if (code == GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE || (code >= 0 && is_ca == 0)) {
        return std::nullopt;
    }
    return Refusal(Alert::bad_certificate, "your certificate belongs to a CA, not to a node",
                   fmt::format("{} belongs to a CA; only that of a node is allowed", leaf.words));
}

Verdict check_key_usage(const Leaf& leaf, const Measures&) {
    unsigned usage = 0;
    const int code = gnutls_x509_crt_get_key_usage(leaf.native.get(), &usage, nullptr);
    if (code >= 0 && (usage & GNUTLS_KEY_DIGITAL_SIGNATURE) != 0) return std::nullopt;
    return Refusal(
        Alert::bad_certificate, "your certificate does not allow its key to sign",
        fmt::format("{} does not allow its key to sign (key usage digitalSignature)", leaf.words));
}

bool has_purpose(gnutls_x509_crt_t certificate, std::string_view wanted) {
    constexpr unsigned kMaxPurposes = 8;
    for (unsigned index = 0; index < kMaxPurposes; ++index) {
        std::array<char, 64> oid{};
        std::size_t size = oid.size();
        const int code =
            gnutls_x509_crt_get_key_purpose_oid(certificate, index, oid.data(), &size, nullptr);
        if (code == GNUTLS_E_SHORT_MEMORY_BUFFER) continue;
        if (code < 0) return false;
        if (std::string_view(oid.data()) == wanted) return true;
    }
    return false;
}

Verdict check_purpose(const Leaf& leaf, const Measures& rules) {
    const bool client = rules.peer_role == Role::client;
    const char* const wanted = client ? GNUTLS_KP_TLS_WWW_CLIENT : GNUTLS_KP_TLS_WWW_SERVER;
    if (has_purpose(leaf.native.get(), wanted)) return std::nullopt;
    return Refusal(
        Alert::unsupported_certificate,
        fmt::format("your certificate is not for a TLS {}", client ? "client" : "server"),
        fmt::format(
            "{} is not for a TLS {} (extended key usage {}), which is the role of the peer here",
            leaf.words, client ? "client" : "server", client ? "clientAuth" : "serverAuth"));
}

Refusal wrong_cluster(const Leaf& leaf, const Identity& identity, const ClusterId& wanted) {
    return {
        Alert::access_denied,
        fmt::format("you belong to cluster {}, I belong to another one", identity.cluster.to_hex()),
        fmt::format("{} is for node {} of cluster {}; expected: a node of cluster {}", leaf.words,
                    identity.node.to_hex(), identity.cluster.to_hex(), wanted.to_hex())};
}

Refusal wrong_node(const Leaf& leaf, const Identity& identity, const NodeId& wanted) {
    return {Alert::access_denied,
            fmt::format("you are node {}, not the one that I expected", identity.node.to_hex()),
            fmt::format("{} is for node {} (incarnation {}); expected: node {}. The address "
                        "probably belongs to another node now",
                        leaf.words, identity.node.to_hex(), identity.incarnation.value(),
                        wanted.to_hex())};
}

Checked<Identity> check_identity(const Leaf& leaf, const Expectation& expected) {
    const auto identity = identity_of(leaf.native.get());
    if (!identity) {
        return Refusal(
            Alert::bad_certificate, "your certificate does not name a node",
            fmt::format("{} does not name a node: {}", leaf.words, identity.error().cause()));
    }
    if (identity->cluster != expected.cluster) {
        return wrong_cluster(leaf, *identity, expected.cluster);
    }
    if (expected.node && identity->node != *expected.node) {
        return wrong_node(leaf, *identity, *expected.node);
    }
    if (expected.seed && !names_seed(leaf.native.get(), identity->cluster)) {
        return Refusal(
            Alert::access_denied, "your certificate does not belong to a seed",
            fmt::format("{} is for node {}, which is not a seed of cluster {}: another "
                        "member of the cluster answers at the address of the seed",
                        leaf.words, identity->node.to_hex(), identity->cluster.to_hex()));
    }
    return *identity;
}

Checked<Identity> check_leaf(const Leaf& leaf, const Measures& rules) {
    for (const auto check : {check_algorithms, check_chain, check_time, check_not_ca,
                             check_key_usage, check_purpose}) {
        if (auto refusal = check(leaf, rules)) return *std::move(refusal);
    }
    return check_identity(leaf, rules.expected);
}

Refusal wrong_ca(const PublicKeyHash& shown, const PublicKeyHash& wanted) {
    return {Alert::unknown_ca, "your CA is not the one that my join string names",
            fmt::format("the seed presents a CA with key {}, but the join string names {}; it is "
                        "not the seed of that cluster, or the cluster was created again after the "
                        "join string: create a new one with `nexar token create`",
                        detail::hex_digits(shown), detail::hex_digits(wanted))};
}

Checked<Certificate> read_ca(std::span<const std::byte> der,
                             const std::optional<PublicKeyHash>& wanted) {
    auto certificate = Certificate::from_der(der);
    if (!certificate) return undecodable(certificate.error());
    const auto key = certificate->public_key();
    if (!key) return undecodable(key.error());
    if (wanted && key->hash() != *wanted) return wrong_ca(key->hash(), *wanted);
    return *std::move(certificate);
}

}  // namespace

Checked<Identity> check_peer(const ShownCertificates& shown, const PeerRules& rules) {
    auto read = read_leaf(shown.own());
    if (auto* refusal = std::get_if<Refusal>(&read)) return std::move(*refusal);
    const Leaf& leaf = std::get<Leaf>(read);
    const Measures measures{.ca = rules.ours.native_ca(),
                            .own = rules.ours.validity(),
                            .expected = rules.expected,
                            .peer_role = rules.peer_role,
                            .now = rules.now};
    // We trust only our own CA certificate: a second certificate must be equal to it.
    if (shown.count > 1 && !std::ranges::equal(shown.der[1], rules.ours.ca().der())) {
        return foreign(leaf, measures);
    }
    return check_leaf(leaf, measures);
}

Checked<SeenSeed> check_seed(const ShownCertificates& shown, const SeedRules& rules) {
    if (shown.count != 2) {
        return Refusal(
            Alert::bad_certificate, "a seed must present its certificate and that of its CA",
            "the peer did not present the certificate of a CA after its own, so it is not "
            "a seed; check that the address is that of the seed and not of a node");
    }
    auto ca = read_ca(shown.der[1], rules.ca);
    if (auto* refusal = std::get_if<Refusal>(&ca)) return std::move(*refusal);
    auto& certificate = std::get<Certificate>(ca);
    const auto cluster = cluster_of_ca(certificate);
    if (!cluster) return undecodable(cluster.error());
    const auto native = certificate.native();
    if (!native) return undecodable(native.error());
    auto read = read_leaf(shown.own());
    if (auto* refusal = std::get_if<Refusal>(&read)) return std::move(*refusal);
    auto identity = check_leaf(
        std::get<Leaf>(read),
        {.ca = native->get(), .expected = {.cluster = *cluster, .seed = true}, .now = rules.now});
    if (auto* refusal = std::get_if<Refusal>(&identity)) return std::move(*refusal);
    return SeenSeed{.identity = std::get<Identity>(identity), .ca = std::move(certificate)};
}

}  // namespace nexar::security
