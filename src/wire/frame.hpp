#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <span>
#include <string_view>

#include "wire/limits.hpp"
#include "wire/preamble.hpp"

namespace nexar::wire {

/// What a frame carries. Numbers are stable: 1-15 belong to the control lane (12 also to the rpc
/// and eager lanes), 16-31 to the eager lane, 32-47 to the rpc lane and 48-63 to the seed lane,
/// which also uses 1-3 and 9; 64-79 occur only in files; 80-95 belong to the control lane and,
/// except revoke, to the seed lane, as do views; 96-111 are for members that are not connected: 96
/// travels only in datagrams, the others belong to the control lane.
enum class FrameType : std::uint8_t {
    hello = 1,
    welcome = 2,
    error_report = 3,
    heartbeat = 4,
    credit = 5,
    grant = 6,
    withdraw = 7,
    confirm = 8,
    abort = 9,
    link_offer = 10,
    link_refusal = 11,
    moved = 12,
    link_ready = 13,
    eager = 16,
    bulk = 17,
    context_begin = 18,
    context_end = 19,
    collective = 20,
    collective_mismatch = 21,
    collective_abort = 22,
    request = 32,
    response = 33,
    cancel = 34,
    proof = 48,
    join_request = 49,
    admission = 50,
    view = 51,
    formation = 52,
    renewal = 53,
    link_report = 54,
    stored_tokens = 64,
    stored_seed = 65,
    suspicion = 80,
    ballot = 81,
    revoke = 82,
    agreement = 83,
    new_world = 84,
    envelope = 96,
    link_state = 97,
    path_request = 98,
};

inline constexpr Lane kNoLane{0};

/// The fixed properties of a frame type.
struct FrameRules {
    FrameType type;
    std::string_view name;
    std::uint32_t max_body_bytes;  // checked before the body is allocated
    Lane lane;                     // kNoLane: only in datagrams
    bool in_datagrams;
};

/// The limits leave room for optional fields of later builds: a whole Hello is at most 4 KiB, a
/// Welcome 160 KiB. A View has room for kMaxViewMembers members with all their addresses.
inline constexpr std::array<FrameRules, 40> kFrameRules{{
    {FrameType::hello, "hello", 4096 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::welcome, "welcome", 163840 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::error_report, "error_report", 2048 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::heartbeat, "heartbeat", 256 - kFrameHeaderBytes, Lane::control, true},
    {FrameType::credit, "credit", 256 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::grant, "grant", 512 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::withdraw, "withdraw", 256 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::confirm, "confirm", 256 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::abort, "abort", 2048 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::link_offer, "link_offer", 512 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::link_refusal, "link_refusal", 2048 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::moved, "moved", 256 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::link_ready, "link_ready", 256 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::eager, "eager", 256 - kFrameHeaderBytes, Lane::eager, false},
    {FrameType::bulk, "bulk", 256 - kFrameHeaderBytes, Lane::eager, false},
    {FrameType::context_begin, "context_begin", 256 - kFrameHeaderBytes, Lane::eager, false},
    {FrameType::context_end, "context_end", 256 - kFrameHeaderBytes, Lane::eager, false},
    {FrameType::collective, "collective", 256 - kFrameHeaderBytes, Lane::eager, false},
    {FrameType::collective_mismatch, "collective_mismatch", 2048 - kFrameHeaderBytes, Lane::eager,
     false},
    {FrameType::collective_abort, "collective_abort", 2048 - kFrameHeaderBytes, Lane::eager, false},
    {FrameType::request, "request", 256 - kFrameHeaderBytes, Lane::rpc, false},
    {FrameType::response, "response", 2048 - kFrameHeaderBytes, Lane::rpc, false},
    {FrameType::cancel, "cancel", 256 - kFrameHeaderBytes, Lane::rpc, false},
    {FrameType::proof, "proof", 256 - kFrameHeaderBytes, Lane::seed, false},
    {FrameType::join_request, "join_request", 4096 - kFrameHeaderBytes, Lane::seed, false},
    {FrameType::admission, "admission", 8192 - kFrameHeaderBytes, Lane::seed, false},
    {FrameType::view, "view", (1U << 25U) - kFrameHeaderBytes, Lane::seed, false},
    {FrameType::formation, "formation", 2048 - kFrameHeaderBytes, Lane::seed, false},
    {FrameType::renewal, "renewal", 2048 - kFrameHeaderBytes, Lane::seed, false},
    {FrameType::link_report, "link_report", 2048 - kFrameHeaderBytes, Lane::seed, false},
    {FrameType::stored_tokens, "stored_tokens", (1U << 21U) - kFrameHeaderBytes, Lane::file, false},
    {FrameType::stored_seed, "stored_seed", (1U << 27U) - kFrameHeaderBytes, Lane::file, false},
    {FrameType::suspicion, "suspicion", 256 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::ballot, "ballot", (1U << 25U) + 256 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::revoke, "revoke", 256 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::agreement, "agreement", (1U << 18U) - kFrameHeaderBytes, Lane::control, false},
    {FrameType::new_world, "new_world", (1U << 19U) - kFrameHeaderBytes, Lane::control, false},
    {FrameType::envelope, "envelope", (1U << 16U) + 256 - kFrameHeaderBytes, kNoLane, true},
    {FrameType::link_state, "link_state", 512 - kFrameHeaderBytes, Lane::control, false},
    {FrameType::path_request, "path_request", 256 - kFrameHeaderBytes, Lane::control, false},
}};

/// The rules of a type; nullptr if the type is unknown.
const FrameRules* rules_of(FrameType type) noexcept;

/// The name as written in the source; "unknown" for an unknown type.
std::string_view name(FrameType type) noexcept;

/// True if a frame of this type may travel there; otherwise it is a protocol violation.
bool belongs_on(Lane lane, FrameType type) noexcept;
bool belongs_in_datagram(FrameType type) noexcept;

/// The first 8 bytes of every frame on the control, rpc and eager lanes and in datagrams.
struct FrameHeader {
    FrameType type = FrameType::hello;
    std::uint16_t extension_bytes = 0;  // optional fields, at the end of the body
    std::uint32_t body_bytes = 0;       // excludes the header, and a payload on the lane

    friend bool operator==(const FrameHeader&, const FrameHeader&) noexcept = default;
};

/// Decodes the header from the first kFrameHeaderBytes of `bytes` and ignores the rest. Success
/// means that the version is ours, the type is known, body_bytes is within the type's limit and
/// extension_bytes within body_bytes; so the caller may allocate the body.
///
/// Fails with malformed (also if `bytes` is too short), version_mismatch, unsupported or
/// limit_exceeded.
Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes);

/// For reading from a stream: the size of the frame, as far as its first bytes determine it. If the
/// result is more than bytes.size(), read that many bytes and call again. Fails like
/// decode_frame_header as soon as the header is complete.
Result<std::size_t> frame_size(std::span<const std::byte> bytes);

}  // namespace nexar::wire
