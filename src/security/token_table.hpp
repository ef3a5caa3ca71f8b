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

/// What a seed knows of a token: not its secret, only what that hashes to.
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
    Secret secret{};  // told once, to who asked for it
};

struct TokenTerms {
    std::uint32_t uses = 1;
    std::chrono::seconds life = std::chrono::hours(1);
};

/// The tokens of a cluster, as a value: a file keeps it, see StateDirectory.
class TokenTable {
public:
    static constexpr std::size_t kMaxTokens = 16384;
    static constexpr std::uint32_t kMaxUses = 1U << 20U;
    static constexpr std::chrono::hours kMaxLife{365 * 24};

    /// An Error (invalid_argument, limit_exceeded) for terms out of bounds, or when the table is
    /// full of tokens that still count. Those that expired a week ago make room.
    Result<NewToken> create(const TokenTerms& terms, WallTime now);

    /// An Error (invalid_argument) when there is none of that id.
    Result<void> revoke(const TokenId& id);

    /// Whether who shows `secret` may come in, after `used` others did with the same token. An
    /// Error (unauthenticated) says why not; a wrong secret and an unknown token look the same, and
    /// take the same time.
    Result<void> check(const TokenId& id, std::span<const std::byte> secret, std::uint32_t used,
                       WallTime now) const;

    const Token* find(const TokenId& id) const noexcept;
    const std::map<TokenId, Token>& all() const noexcept { return tokens_; }

    void put(const Token& token) { tokens_.insert_or_assign(token.id, token); }

private:
    std::map<TokenId, Token> tokens_;
};

}  // namespace nexar::security
