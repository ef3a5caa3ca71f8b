#include "wire/frame.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/try.hpp"
#include "wire/describe.hpp"
#include "wire/reader.hpp"

namespace nexar::wire {

namespace {

// Index into kFrameRules by type; kFrameRules.size() for an unknown type.
constexpr std::array<std::uint8_t, 256> kRulesIndex = [] {
    std::array<std::uint8_t, 256> index{};
    index.fill(kFrameRules.size());
    for (std::size_t i = 0; i < kFrameRules.size(); ++i) {
        index[static_cast<std::uint8_t>(kFrameRules[i].type)] = static_cast<std::uint8_t>(i);
    }
    return index;
}();

[[gnu::cold, gnu::noinline]] Error unknown_type(FrameType type) {
    std::string known;
    for (const FrameRules& rules : kFrameRules) {
        known += fmt::format(" {} {}", static_cast<unsigned>(rules.type), rules.name);
    }
    return {Errc::unsupported, fmt::format("frame header: type {} is unknown; known types:{}",
                                           static_cast<unsigned>(type), known)};
}

[[gnu::cold, gnu::noinline]] Error body_too_large(const FrameHeader& header, std::uint32_t limit) {
    return {Errc::limit_exceeded,
            fmt::format("frame header: the body of {} has {} bytes; the limit is {}",
                        name(header.type), header.body_bytes, limit)};
}

[[gnu::cold, gnu::noinline]] Error extension_too_large(const FrameHeader& header) {
    return {Errc::malformed,
            fmt::format("frame header: {} bytes of optional fields do not fit in the {} bytes of "
                        "the body of {}",
                        header.extension_bytes, header.body_bytes, name(header.type))};
}

}  // namespace

const FrameRules* rules_of(FrameType type) noexcept {
    const std::size_t index = kRulesIndex[static_cast<std::uint8_t>(type)];
    return index < kFrameRules.size() ? &kFrameRules[index] : nullptr;
}

std::string_view name(FrameType type) noexcept {
    const FrameRules* rules = rules_of(type);
    return rules != nullptr ? rules->name : "unknown";
}

bool belongs_on(Lane lane, FrameType type) noexcept {
    const FrameRules* rules = rules_of(type);
    if (rules == nullptr || lane == kNoLane) return false;
    const bool also_to_seeds = type <= FrameType::error_report || type == FrameType::abort ||
                               type == FrameType::suspicion || type == FrameType::ballot;
    if (type == FrameType::view && lane == Lane::control) return true;
    if (type == FrameType::moved && (lane == Lane::rpc || lane == Lane::eager)) return true;
    return rules->lane == lane || (lane == Lane::seed && also_to_seeds);
}

bool belongs_in_datagram(FrameType type) noexcept {
    const FrameRules* rules = rules_of(type);
    return rules != nullptr && rules->in_datagrams;
}

[[gnu::flatten]] Result<FrameHeader> decode_frame_header(std::span<const std::byte> bytes) {
    FrameHeader header;
    FirstFault fault;
    OptionalFields none({}, fault);
    Reader reader(bytes.first(std::min(bytes.size(), kFrameHeaderBytes)), none, fault);
    describe(reader, header);
    if (fault.any()) return decode_error("frame header", *fault);
    const FrameRules* rules = rules_of(header.type);
    if (rules == nullptr) return unknown_type(header.type);
    if (header.body_bytes > rules->max_body_bytes) {
        return body_too_large(header, rules->max_body_bytes);
    }
    if (header.extension_bytes > header.body_bytes) return extension_too_large(header);
    return header;
}

Result<std::size_t> frame_size(std::span<const std::byte> bytes) {
    if (bytes.size() < kFrameHeaderBytes) return kFrameHeaderBytes;
    NEXAR_TRY_VALUE(header, decode_frame_header(bytes));
    return kFrameHeaderBytes + header.body_bytes;
}

}  // namespace nexar::wire
