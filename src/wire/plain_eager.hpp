#pragma once

#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>

#include "wire/frame.hpp"
#include "wire/messages.hpp"
#include "wire/scalar.hpp"

namespace nexar::wire {

/// The bytes of an EagerHeader without optional fields.
inline constexpr std::size_t kPlainEagerBytes = kFrameHeaderBytes + 34;

/// Decodes the frame at the front of `bytes` if it is an EagerHeader without flags and optional
/// fields, which nearly all small messages have. Returns nullopt for everything else, also for a
/// faulty frame: decode_frame_header() and decode_body() then say what it is. The sender may change
/// `bytes` meanwhile.
inline std::optional<MessageHeader> decode_plain_eager(std::span<const std::byte> bytes) noexcept {
    if (bytes.size() < kPlainEagerBytes) return std::nullopt;
    std::array<std::byte, kPlainEagerBytes> copy;  // NOLINT: filled by the next line
    std::memcpy(copy.data(), bytes.data(), copy.size());
    constexpr std::uint64_t kHeader = std::uint64_t{kProtocolVersion} |
                                      (static_cast<std::uint64_t>(FrameType::eager) << 8U) |
                                      (std::uint64_t{kPlainEagerBytes - kFrameHeaderBytes} << 32U);
    const std::byte* const at = copy.data();
    if (load<std::uint64_t>(at) != kHeader || load<std::uint16_t>(at + 40) != 0) {
        return std::nullopt;
    }
    const auto size = load<std::uint64_t>(at + 32);
    if (size > kMaxEagerBytes) return std::nullopt;
    return MessageHeader{.context = ContextId(load<std::uint64_t>(at + 8)),
                         .sequence = Sequence(load<std::uint64_t>(at + 16)),
                         .tag = Tag(load<std::uint64_t>(at + 24)),
                         .size = size};
}

}  // namespace nexar::wire
