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
/// Names a token; no secret.
using TokenId = RandomId<TokenIdName>;

inline constexpr std::size_t kTokenSecretBytes = 32;

/// All that a joiner needs: where the seed is, how to know it, and what to show it.
///
///     nexar1.<token id>.<secret>.<hash of the CA's key>.<check>@<host:port>,<host:port>
///
/// The parts are 32, 64, 64 and 8 lower-case hexadecimal digits. The check is the front of the
/// SHA-256 of all other bytes: a string that was cut or mistyped says so, instead of looking like
/// an attack. A seed is an address in numbers or a name, with a port.
struct JoinString {
    static constexpr std::size_t kMaxBytes = 1024;
    static constexpr std::size_t kMaxSeeds = 8;

    TokenId token{};
    Secret secret{};  // kTokenSecretBytes
    PublicKeyHash ca{};
    std::vector<std::string> seeds{};  // 1 to kMaxSeeds

    /// An Error (bad_config) says what is wrong and repeats nothing of the text.
    static Result<JoinString> parse(std::string_view text);

    /// A secret itself: for the one who asked for it, never for a log.
    std::string text() const;
};

/// "host:port" or "[v6]:port" in two; an Error (invalid_argument) says what is wrong with it.
struct HostPort {
    std::string host{};  // without brackets
    std::uint16_t port = 0;

    static Result<HostPort> parse(std::string_view text);
};

}  // namespace nexar::security
