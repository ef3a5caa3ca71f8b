#include "security/certificate.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <span>
#include <vector>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "harness.hpp"
#include "security/certificate_message.hpp"
#include "security/cluster_ca.hpp"
#include "security/credentials.hpp"
#include "security/der.hpp"
#include "security/peer_check.hpp"

/// What a stranger can present before authentication: a certificate as DER, the message that
/// carries it, and the subsequent checks, which nobody passes without the key of the CA.
namespace nexar::fuzz {

namespace {

using security::Certificate;
using security::Refusal;
using Bytes = std::vector<std::byte>;

constexpr security::WallTime kNow = security::wall_time(1'777'863'721);

std::shared_ptr<const security::Credentials> make_credentials() {
    const auto ca = security::ClusterCa::create(ClusterId(), kNow).value();
    auto key = security::KeyPair::generate().value();
    const auto own = ca.issue({.public_key = key.public_key()}, kNow).value();
    return security::Credentials::create(std::move(key), own, ca.certificate()).value();
}

void check_refusal(const Refusal& refusal) {
    NEXAR_ASSERT(!refusal.reason.empty() && refusal.reason.size() <= Refusal::kMaxReasonBytes);
    NEXAR_ASSERT(!first_unprintable(refusal.reason));
    NEXAR_ASSERT(!first_unprintable(refusal.error.cause()),
                 "a peer must not be able to forge a log line");
}

void check_message(std::span<const std::byte> body) {
    static const auto credentials = make_credentials();
    const auto read = security::read_certificate_message(body);
    if (const auto* refusal = std::get_if<Refusal>(&read)) return check_refusal(*refusal);
    const auto verdict = security::check_peer(
        std::get<security::ShownCertificates>(read),
        {.ours = *credentials, .peer_role = security::Role::client, .now = kNow});
    NEXAR_ASSERT(std::holds_alternative<Refusal>(verdict), "only the CA's key can make a member");
    check_refusal(std::get<Refusal>(verdict));
}

/// The TLS 1.3 message that presents only `der`.
Bytes message_of(std::span<const std::byte> der) {
    const auto number = [](Bytes& out, std::size_t value) {
        for (const unsigned shift : {16U, 8U, 0U}) {
            out.push_back(static_cast<std::byte>(value >> shift));
        }
    };
    Bytes body{std::byte{0}};
    number(body, der.size() + 5);
    number(body, der.size());
    std::ranges::copy(der, std::back_inserter(body));
    body.resize(body.size() + 2);
    return body;
}

}  // namespace

bool accepts_certificate(std::span<const std::byte> input) {
    check_message(input);
    check_message(message_of(input));

    const auto names = security::count_alternative_names(input, Certificate::kMaxNames);
    const auto certificate = Certificate::from_der(input);
    if (!certificate) return false;
    NEXAR_ASSERT(names.has_value() && *names <= Certificate::kMaxNames);
    NEXAR_ASSERT(std::ranges::equal(certificate->der(), input));
    NEXAR_ASSERT(Certificate::from_pem(certificate->to_pem()).value() == *certificate);
    (void)security::in_words(certificate->validity().not_before);
    (void)security::in_words(certificate->validity().not_after);
    (void)certificate->public_key();
    const auto identity = certificate->identity();
    if (!identity) return false;
    NEXAR_ASSERT(security::parse_identity_uri(security::identity_uri(*identity)).value() ==
                 *identity);
    return true;
}

}  // namespace nexar::fuzz
