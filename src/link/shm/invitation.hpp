#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <vector>

#include "link/shm/socket.hpp"
#include "port/stream.hpp"

/// The messages with which two processes of one host set up a link.
///
///   inviter                                   invited
///      | invitation, over their other link  ---> |   names the socket; two nonces
///      | <-------- hello, over that socket       |   the first nonce, its memory
///      | answer ------------------------------>  |   the second nonce, its memory
///
/// Only the two ends of the other link, which is authenticated and secret, know the nonces: they
/// tie the two links together.
namespace nexar::shm {

using Nonce = std::array<std::byte, 16>;
using BootId = std::array<std::byte, 16>;

/// Compares in a time that does not depend on the content.
bool same(const Nonce& a, const Nonce& b) noexcept;

/// Identifies this boot of this machine; equal in all containers on it.
Result<BootId> boot_id();

struct InvitationText {
    BootId boot{};
    SocketName socket{};
    Nonce presented{};  // by the invited process
    Nonce answered{};   // by the inviting one
    std::uint32_t user = 0;

    std::vector<std::byte> encoded() const;
    /// Errc::malformed, or Errc::version_mismatch for an invitation of another version.
    static Result<InvitationText> decode(port::ConstBytes bytes);
};

/// Why the listener does not want a link.
enum class Refusal : std::uint32_t { none, other_pid_namespace, unknown_nonce, unusable_memory };
inline constexpr std::uint32_t kRefusals = 4;

/// A hello or an answer.
struct Greeting {
    Nonce nonce{};
    std::uint64_t ring_bytes = 0;
    Refusal refusal = Refusal::none;

    static constexpr std::size_t kBytes = 40;
    std::array<std::byte, kBytes> encoded() const noexcept;
    static std::optional<Greeting> decode(port::ConstBytes bytes) noexcept;
};

/// A piece of shared memory: sent with its descriptor.
struct ShareNote {
    std::uint64_t name = 0;
    std::uint64_t bytes = 0;  // of the memory, in whole pages
    std::uint64_t used = 0;   // of these, those that the owner asked for

    static constexpr std::size_t kBytes = 32;
    std::array<std::byte, kBytes> encoded() const noexcept;
    static std::optional<ShareNote> decode(port::ConstBytes bytes) noexcept;
};

}  // namespace nexar::shm
