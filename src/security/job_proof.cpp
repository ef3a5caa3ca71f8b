#include "security/job_proof.hpp"

#include <fmt/format.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>

#include <algorithm>
#include <set>
#include <vector>

#include "base/assert.hpp"

namespace nexar::security {

namespace {

// A random text of 32 hexadecimal digits has fewer than 6 distinct digits once in 10^12 times.
constexpr std::size_t kLeastDistinct = 6;

Error bad_secret(std::string_view why) {
    return {Errc::bad_config,
            fmt::format("the job secret cannot be used: {}; {}", why, kMakeJobSecret)};
}

}  // namespace

Result<JobSecret> JobSecret::from_text(std::string_view text) {
    constexpr std::string_view kBlanks = " \t\r\n";
    const std::size_t first = text.find_first_not_of(kBlanks);
    text = first == std::string_view::npos
               ? std::string_view{}
               : text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
    if (text.size() < kLeastCharacters) {
        return bad_secret(fmt::format("it has {} characters; allowed: at least {}", text.size(),
                                      kLeastCharacters));
    }
    if (text.size() > kMaxCharacters) {
        return bad_secret(fmt::format("it has more than {} characters", kMaxCharacters));
    }
    if (std::set<char>(text.begin(), text.end()).size() < kLeastDistinct) {
        return bad_secret("it repeats a few characters, so it could be guessed");
    }
    return JobSecret(Secret(std::as_bytes(std::span(text))));
}

JobSecret::Proof JobSecret::proof(Role prover, std::span<const std::byte> exported,
                                  const PublicKey& ca) const {
    const std::string_view label =
        prover == Role::client ? "nexar job secret 1 joiner" : "nexar job secret 1 seed";
    std::vector<std::byte> content;
    const auto add = [&](std::span<const std::byte> bytes) {
        content.insert(content.end(), bytes.begin(), bytes.end());
    };
    add(std::as_bytes(std::span(label)));
    content.push_back(std::byte{0});  // so that no label is a prefix of another
    add(exported);
    add(ca.spki());
    Proof made{};
    const int code = secret_.reveal([&](std::span<const std::byte> key) {
        return gnutls_hmac_fast(GNUTLS_MAC_SHA256, key.data(), key.size(), content.data(),
                                content.size(), made.data());
    });
    NEXAR_ASSERT(code == 0, "HMAC of a few hundred bytes cannot fail");
    return made;
}

bool JobSecret::proves(const Proof& shown, Role prover, std::span<const std::byte> exported,
                       const PublicKey& ca) const {
    const Proof right = proof(prover, exported, ca);
    return gnutls_memcmp(right.data(), shown.data(), right.size()) == 0;
}

}  // namespace nexar::security
