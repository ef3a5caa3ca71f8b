#include "security/certificate_message.hpp"

#include <fmt/format.h>

#include <optional>

#include "security/certificate.hpp"
#include "security/der.hpp"

namespace nexar::security {

namespace {

/// Removes a big-endian length of `width` bytes, and then that many bytes, from the front of
/// `rest`.
std::optional<std::span<const std::byte>> take_vector(std::span<const std::byte>& rest,
                                                      std::size_t width) noexcept {
    if (rest.size() < width) return std::nullopt;
    std::size_t size = 0;
    for (const std::byte b : rest.first(width)) {
        size = size * 256 + std::to_integer<std::size_t>(b);
    }
    if (size > rest.size() - width) return std::nullopt;
    const auto content = rest.subspan(width, size);
    rest = rest.subspan(width + size);
    return content;
}

Refusal does_not_decode() {
    return {Alert::decode_error, "your Certificate message is malformed",
            "the peer sent a malformed TLS 1.3 Certificate message", Errc::malformed};
}

Refusal too_many() {
    return {Alert::bad_certificate,
            fmt::format("you presented more than {} certificates", kMaxShownCertificates),
            fmt::format("the peer presented more than {} certificates; allowed: its own, followed "
                        "by that of the cluster CA",
                        kMaxShownCertificates)};
}

Refusal none() {
    return {Alert::certificate_required, "you presented no certificate",
            "the peer presented no certificate; it must join the cluster first to get one"};
}

Refusal too_large(std::size_t bytes) {
    return {Alert::bad_certificate,
            fmt::format("your certificates exceed {} bytes", kMaxHandshakeBytes),
            fmt::format("the peer presented {} bytes of certificates; allowed: at most {}", bytes,
                        kMaxHandshakeBytes)};
}

std::optional<Refusal> check_names(std::span<const std::byte> certificate) {
    const auto names = count_alternative_names(certificate, Certificate::kMaxNames);
    if (!names) {
        return Refusal(Alert::bad_certificate, "your certificate is malformed",
                       "the peer presented a certificate that is not valid DER");
    }
    if (*names > Certificate::kMaxNames) {
        return Refusal(
            Alert::bad_certificate,
            fmt::format("your certificate has more than {} names", Certificate::kMaxNames),
            fmt::format("the certificate that the peer presented has more than {} subject "
                        "alternative names; a node has one",
                        Certificate::kMaxNames));
    }
    return std::nullopt;
}

}  // namespace

Checked<ShownCertificates> read_certificate_message(std::span<const std::byte> body) {
    if (body.size() > kMaxHandshakeBytes) return too_large(body.size());
    const auto context = take_vector(body, 1);
    if (!context || !context->empty()) return does_not_decode();
    auto list = take_vector(body, 3);
    if (!list || !body.empty()) return does_not_decode();
    if (list->empty()) return none();

    ShownCertificates shown;
    while (!list->empty()) {
        if (shown.count == kMaxShownCertificates) return too_many();
        const auto certificate = take_vector(*list, 3);
        const auto extensions = take_vector(*list, 2);
        if (!certificate || !extensions) return does_not_decode();
        shown.der[shown.count++] = *certificate;
    }
    if (auto refusal = check_names(shown.own())) return *std::move(refusal);
    return shown;
}

}  // namespace nexar::security
