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

/// The secret that all ranks of a job share, from their launcher. It is never sent over the
/// network.
class JobSecret {
public:
    static constexpr std::size_t kLeastCharacters = 32;  // 128 bits as hexadecimal digits
    static constexpr std::size_t kMaxCharacters = 4096;

    /// Reads the text of a variable or a file, ignoring white space around it. Fails with
    /// bad_config if it is too short or obviously not random; the error says how to create a secret
    /// and quotes nothing.
    static Result<JobSecret> from_text(std::string_view text);

    /// HMAC-SHA-256 over the prover's role, the exporter of the connection and the CA's key. An
    /// eavesdropper cannot use a proof on another connection, in the other direction, or for
    /// another CA.
    static constexpr std::size_t kProofBytes = 32;
    using Proof = std::array<std::byte, kProofBytes>;
    Proof proof(Role prover, std::span<const std::byte> exported, const PublicKey& ca) const;

    /// Takes constant time, whatever is wrong with the proof.
    bool proves(const Proof& shown, Role prover, std::span<const std::byte> exported,
                const PublicKey& ca) const;

private:
    explicit JobSecret(Secret secret) noexcept : secret_(std::move(secret)) {}

    Secret secret_;
};

/// How to create a secret, for error messages.
inline constexpr std::string_view kMakeJobSecret =
    "create one with `openssl rand -hex 32` and give the same one to all ranks in "
    "NEXAR_JOB_SECRET, "
    "or in a file with mode 0600 that NEXAR_JOB_SECRET_FILE names";

}  // namespace nexar::security
