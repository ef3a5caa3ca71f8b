#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <span>
#include <string_view>
#include "base/types.hpp"

#include "wire/limits.hpp"

namespace nexar::wire {

/// What a stream carries. Numbers are stable.
enum class Lane : std::uint8_t {
    control = 1,  // membership, credits, errors
    rpc = 2,
    eager = 3,       // small messages, and the headers of larger ones
    bulk = 4,        // the payload of one large message
    call = 5,        // the payload of one large request or response
    seed = 6,        // between a seed and a joiner or a member, in the place of control
    file = 7,        // never on a stream: what a seed keeps
    collective = 8,  // the payload of one large message of a collective
};

/// The name as written in the source; "unknown" for a number that is none.
std::string_view name(Lane lane) noexcept;

/// The first four bytes of every stream. The first is no ASCII, so that text is never mistaken for
/// a stream of ours.
inline constexpr std::array<std::byte, 4> kMagic{std::byte{0x8e}, std::byte{'n'}, std::byte{'x'},
                                                 std::byte{'r'}};

/// Number of a call per (caller, callee), from 0; given when its request is written.
using CallId = Strong<struct CallIdName, std::uint64_t>;

/// What a call stream carries: both sides number the calls that they make. Numbers are stable.
enum class CallPart : std::uint64_t { none = 0, request = 1, response = 2 };

/// The first bytes of every stream. A bulk or collective stream names its message and a call stream
/// its call, because their bytes may arrive before the header on the lane does; elsewhere the names
/// are 0 and not sent. The sender is the owner of the connection, so it is not named.
struct Preamble {
    Lane lane = Lane::control;
    ContextId context{};
    Sequence sequence{};
    CallId call{};
    CallPart part = CallPart::none;

    friend bool operator==(const Preamble&, const Preamble&) noexcept = default;
};

/// Whether the preamble of such a stream has a context and a sequence.
constexpr bool names_message(Lane lane) noexcept {
    return lane == Lane::bulk || lane == Lane::collective;
}

constexpr std::size_t encoded_size(const Preamble& preamble) noexcept {
    const bool named = names_message(preamble.lane) || preamble.lane == Lane::call;
    return named ? kBulkPreambleBytes : kPreambleBytes;
}

/// Writes the preamble to the front of `out` and returns its size. Fails with invalid_argument when
/// it does not fit or breaks the rules above.
Result<std::size_t> encode(const Preamble& preamble, std::span<std::byte> out);

/// For reading from a stream: how many bytes the preamble takes, as far as its first bytes tell.
/// More than bytes.size() means: read on, and ask again. Fails with malformed or version_mismatch
/// as soon as kPreambleBytes are there.
Result<std::size_t> preamble_size(std::span<const std::byte> bytes);

/// Reads a whole preamble: `bytes` must hold nothing else.
Result<Preamble> decode_preamble(std::span<const std::byte> bytes);

}  // namespace nexar::wire
