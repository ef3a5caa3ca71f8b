#include "security/join_string.hpp"

#include <gnutls/crypto.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "harness.hpp"

/// The join string of a joining node. Each input is parsed a second time with its checksum
/// corrected, because no mutation would find it.
namespace nexar::fuzz {

namespace {

using security::HostPort;
using security::JoinString;

bool reads(const std::string& text) {
    const auto parsed = JoinString::parse(text);
    if (!parsed) {
        NEXAR_ASSERT(parsed.error().code() == Errc::bad_config);
        // The message contains no text of the input, so its length is bounded.
        NEXAR_ASSERT(parsed.error().cause().size() < 200 &&
                     !first_unprintable(parsed.error().cause()));
        return false;
    }
    NEXAR_ASSERT(parsed->text() == text, "a join string must have only one text");
    NEXAR_ASSERT(text.size() <= JoinString::kMaxBytes);
    NEXAR_ASSERT(parsed->secret.size() == security::kTokenSecretBytes);
    NEXAR_ASSERT(!parsed->seeds.empty() && parsed->seeds.size() <= JoinString::kMaxSeeds);
    for (const std::string& seed : parsed->seeds) {
        const auto where = HostPort::parse(seed);
        NEXAR_ASSERT(where.has_value() && !where->host.empty() && where->port != 0);
        NEXAR_ASSERT(!first_unprintable(seed), "it must be safe to log");
    }
    return true;
}

/// Replaces the 8 digits between the last dot before the @ and the @ with the checksum of the rest.
std::string put_right(std::string text) {
    const std::size_t at = text.find('@');
    if (at == std::string::npos) return text;
    const std::size_t dot = text.rfind('.', at);
    if (dot == std::string::npos) return text;
    const std::string checked = text.substr(0, dot + 1) + text.substr(at);
    std::array<std::byte, 32> digest{};
    const int code =
        gnutls_hash_fast(GNUTLS_DIG_SHA256, checked.data(), checked.size(), digest.data());
    NEXAR_ASSERT(code == 0);
    const auto front = std::span<const std::byte>(digest).first(4);
    return text.replace(dot + 1, at - dot - 1, nexar::detail::hex_digits(front));
}

}  // namespace

bool accepts_join_string(std::span<const std::byte> input) {
    std::string text;
    for (const std::byte byte : input) text.push_back(static_cast<char>(byte));
    (void)HostPort::parse(text);
    const bool as_it_is = reads(text);
    const bool mended = reads(put_right(text));
    NEXAR_ASSERT(mended || !as_it_is, "correcting a valid checksum must not change it");
    return mended;
}

}  // namespace nexar::fuzz
