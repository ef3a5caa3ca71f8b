#pragma once

#include <nexar/result.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/identity.hpp"
#include "base/secret.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

struct TokenIdName {
    static constexpr std::string_view kWord = "token id";
};
/// Identifies a token; not secret.
using TokenId = RandomId<TokenIdName>;

inline constexpr std::size_t kTokenSecretBytes = 32;

/// Everything that a joiner needs: the addresses of the seed, how to authenticate it, and the token
/// to present.
///
///     nexar1.<token id>.<secret>.<hash of the CA's key>.<check>@<host:port>,<host:port>
///
/// The parts have 32, 64, 64 and 8 lower-case hexadecimal digits. The check is the beginning of the
/// SHA-256 of all other bytes, so that a truncated or mistyped string is reported as such and does
/// not look like an attack. A seed is an IP address or a host name, with a port.
struct JoinString {
    static constexpr std::size_t kMaxBytes = 1024;
    static constexpr std::size_t kMaxSeeds = 8;

    TokenId token{};
    Secret secret{};  // kTokenSecretBytes
    PublicKeyHash ca{};
    std::vector<std::string> seeds{};  // 1 to kMaxSeeds

    /// Fails with bad_config; the error says what is wrong and quotes nothing of the text.
    static Result<JoinString> parse(std::string_view text);

    /// The text is itself a secret: show it only to the user who requested it, and never log it.
    std::string text() const;
};

/// The parts of "host:port" or "[v6]:port". parse() fails with invalid_argument and says what is
/// wrong.
struct HostPort {
    std::string host{};  // without brackets
    std::uint16_t port = 0;

    static Result<HostPort> parse(std::string_view text);
};

}  // namespace nexar::security
