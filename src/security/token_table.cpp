#include "security/token_table.hpp"

#include <fmt/format.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "security/digest.hpp"
#include "security/gnutls_handle.hpp"
#include "security/random_id.hpp"

namespace nexar::security {

namespace {

constexpr std::chrono::hours kKeptExpired{7 * 24};

Error not_let_in(std::string_view why) {
    return {Errc::unauthenticated,
            fmt::format("{}; create another one with `nexar token create`", why)};
}

}  // namespace

Result<NewToken> TokenTable::create(const TokenTerms& terms, WallTime now) {
    if (terms.uses < 1 || terms.uses > kMaxUses) {
        return Error(Errc::invalid_argument,
                     fmt::format("a token for {} uses was requested; allowed: 1 to {}", terms.uses,
                                 kMaxUses));
    }
    if (terms.life < std::chrono::seconds(1) || terms.life > kMaxLife) {
        return Error(Errc::invalid_argument,
                     fmt::format("a token for {} s was requested; allowed: 1 s to {} days",
                                 terms.life.count(), kMaxLife.count() / 24));
    }
    std::erase_if(tokens_,
                  [&](const auto& entry) { return entry.second.expires_at < now - kKeptExpired; });
    if (tokens_.size() >= kMaxTokens) {
        return Error(Errc::limit_exceeded,
                     fmt::format("there are already {} tokens, which is the limit", kMaxTokens));
    }
    NewToken made;
    NEXAR_TRY_VALUE(id, new_token_id());
    int code = 0;
    made.secret = Secret::filled(kTokenSecretBytes, [&](std::span<std::byte> bytes) {
        code = gnutls_rnd(GNUTLS_RND_KEY, bytes.data(), bytes.size());
    });
    if (code < 0) return library_error("taking random bytes", code);
    const auto start = std::chrono::floor<std::chrono::seconds>(now);
    made.token = {.id = id,
                  .secret_hash = made.secret.reveal(sha256),
                  .uses = terms.uses,
                  .created_at = start,
                  .expires_at = start + terms.life};
    put(made.token);
    return made;
}

Result<void> TokenTable::revoke(const TokenId& id) {
    const auto found = tokens_.find(id);
    if (found == tokens_.end()) {
        return Error(
            Errc::invalid_argument,
            fmt::format("there is no token {}; `nexar token list` shows all tokens", id.to_hex()));
    }
    found->second.revoked = true;
    return {};
}

const Token* TokenTable::find(const TokenId& id) const noexcept {
    const auto found = tokens_.find(id);
    return found == tokens_.end() ? nullptr : &found->second;
}

Result<void> TokenTable::check(const TokenId& id, std::span<const std::byte> secret,
                               std::uint32_t used, WallTime now) const {
    const Token* token = find(id);
    static constexpr std::array<std::byte, 32> kNone{};
    const auto& wanted = token == nullptr ? kNone : token->secret_hash;
    const auto shown = sha256(secret);
    if (gnutls_memcmp(shown.data(), wanted.data(), shown.size()) != 0 || token == nullptr) {
        return not_let_in("it presented an unknown token");
    }
    if (token->revoked) return not_let_in("it presented a revoked token");
    if (now >= token->expires_at) {
        return not_let_in(fmt::format("it presented a token that expired {} ago",
                                      in_words(now - token->expires_at)));
    }
    if (used >= token->uses) {
        return not_let_in(fmt::format("it presented a token that was already used {} of {} times",
                                      used, token->uses));
    }
    return {};
}

}  // namespace nexar::security
