#pragma once

#include <array>
#include <cstddef>
#include <nexar/result.hpp>
#include <span>
#include <string>
#include <string_view>

#include "base/secret.hpp"
#include "security/peer_check.hpp"
#include "security/public_key.hpp"

namespace nexar::security {

/// The secret that all ranks of a job share, from their launcher. It never crosses the wire.
class JobSecret {
public:
    static constexpr std::size_t kLeastCharacters = 32;  // 128 bits as hexadecimal digits
    static constexpr std::size_t kMaxCharacters = 4096;

    /// From the text of a variable or a file, without white space around it. An Error (bad_config)
    /// when it is too short or plainly no random text; says how to make one and quotes nothing.
    static Result<JobSecret> from_text(std::string_view text);

    /// HMAC-SHA-256 over who proves it, the exporter of the connection and the CA's key. A proof
    /// that was heard is worth nothing on another connection, in the other direction, or for
    /// another CA.
    static constexpr std::size_t kProofBytes = 32;
    using Proof = std::array<std::byte, kProofBytes>;
    Proof proof(Role prover, std::span<const std::byte> exported, const PublicKey& ca) const;

    /// Takes a time that does not depend on what is wrong.
    bool proves(const Proof& shown, Role prover, std::span<const std::byte> exported,
                const PublicKey& ca) const;

private:
    explicit JobSecret(Secret secret) noexcept : secret_(std::move(secret)) {}

    Secret secret_;
};

/// How to make one, for messages.
inline constexpr std::string_view kMakeJobSecret =
    "make one with `openssl rand -hex 32` and give the same to all ranks in NEXAR_JOB_SECRET, or "
    "in "
    "a file with mode 0600 that NEXAR_JOB_SECRET_FILE names";

}  // namespace nexar::security
