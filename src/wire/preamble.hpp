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
    seed = 6,        // between a seed and a joiner or member, instead of control
    file = 7,        // never on a stream: the files of a seed
    collective = 8,  // the payload of one large collective message
    continued = 9,   // a control, rpc or eager lane that began on another link of the pair
};

/// The name as written in the source; "unknown" for an unknown lane.
std::string_view name(Lane lane) noexcept;

/// The first four bytes of every stream. The first is not ASCII, so that text is never mistaken for
/// a nexar stream.
inline constexpr std::array<std::byte, 4> kMagic{std::byte{0x8e}, std::byte{'n'}, std::byte{'x'},
                                                 std::byte{'r'}};

/// Number of a call per (caller, callee), from 0; assigned when its request is written.
using CallId = Strong<struct CallIdName, std::uint64_t>;

/// What a call stream carries. Needed because each side numbers its own calls. Numbers are stable.
enum class CallPart : std::uint64_t { none = 0, request = 1, response = 2 };

/// The lane that a continued lane continues. Numbers are those of Lane.
enum class ContinuedLane : std::uint64_t { none = 0, control = 1, rpc = 2, eager = 3 };

/// The first bytes of every stream. A bulk or collective stream names its message, and a call
/// stream its call, because their bytes may arrive before the header on the lane; a continued lane
/// says which lane it is and at which of its bytes it continues. On other lanes these fields are 0
/// and not sent. The connection identifies the sender.
struct Preamble {
    Lane lane = Lane::control;
    /// How often the same payload was begun before, on links that broke. Only for streams that name
    /// what they carry.
    std::uint16_t attempt = 0;
    ContextId context{};
    Sequence sequence{};
    CallId call{};
    CallPart part = CallPart::none;
    ContinuedLane continues = ContinuedLane::none;
    std::uint64_t position = 0;  // bytes of the lane before this one, on all links

    friend bool operator==(const Preamble&, const Preamble&) noexcept = default;
};

/// True if the preamble of such a stream has a context and a sequence.
constexpr bool names_message(Lane lane) noexcept {
    return lane == Lane::bulk || lane == Lane::collective;
}

/// True if the preamble of such a stream says more than its lane.
constexpr bool names_content(Lane lane) noexcept {
    return names_message(lane) || lane == Lane::call || lane == Lane::continued;
}

constexpr std::size_t encoded_size(const Preamble& preamble) noexcept {
    return names_content(preamble.lane) ? kBulkPreambleBytes : kPreambleBytes;
}

/// Writes the preamble to the front of `out` and returns its size. Fails with invalid_argument if
/// it does not fit or violates the rules above.
Result<std::size_t> encode(const Preamble& preamble, std::span<std::byte> out);

/// For reading from a stream: the size of the preamble, as far as its first bytes determine it. If
/// the result is more than bytes.size(), read that many bytes and call again. Fails with malformed
/// or version_mismatch as soon as kPreambleBytes have arrived.
Result<std::size_t> preamble_size(std::span<const std::byte> bytes);

/// Decodes a whole preamble; `bytes` must contain nothing else.
Result<Preamble> decode_preamble(std::span<const std::byte> bytes);

}  // namespace nexar::wire
