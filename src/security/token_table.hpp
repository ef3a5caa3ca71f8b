#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nexar/result.hpp>
#include <optional>
#include <vector>

#include "base/secret.hpp"
#include "security/join_string.hpp"
#include "security/wall_time.hpp"

namespace nexar::security {

/// What a seed stores about a token: the hash of its secret, not the secret.
struct Token {
    TokenId id{};
    std::array<std::byte, 32> secret_hash{};
    std::uint32_t uses = 1;
    WallTime created_at{};
    WallTime expires_at{};
    bool revoked = false;

    friend bool operator==(const Token&, const Token&) noexcept = default;
};

struct NewToken {
    Token token{};
    Secret secret{};  // shown once, to the user who created the token
};

struct TokenTerms {
    std::uint32_t uses = 1;
    std::chrono::seconds life = std::chrono::hours(1);
};

/// The tokens of a cluster. StateDirectory stores it in a file.
class TokenTable {
public:
    static constexpr std::size_t kMaxTokens = 16384;
    static constexpr std::uint32_t kMaxUses = 1U << 20U;
    static constexpr std::chrono::hours kMaxLife{365 * 24};

    /// Fails with invalid_argument if the terms are out of range, and with limit_exceeded if the
    /// table is full. Removes tokens that expired more than a week ago.
    Result<NewToken> create(const TokenTerms& terms, WallTime now);

    /// Fails with invalid_argument if there is no token with this id.
    Result<void> revoke(const TokenId& id);

    /// Checks whether a joiner that presents `secret` may join after `used` others with the same
    /// token. Fails with unauthenticated and says why; a wrong secret and an unknown token give the
    /// same error in the same time.
    Result<void> check(const TokenId& id, std::span<const std::byte> secret, std::uint32_t used,
                       WallTime now) const;

    const Token* find(const TokenId& id) const noexcept;
    const std::map<TokenId, Token>& all() const noexcept { return tokens_; }

    void put(const Token& token) { tokens_.insert_or_assign(token.id, token); }

private:
    std::map<TokenId, Token> tokens_;
};

}  // namespace nexar::security
