#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/mix.hpp"
#include "base/types.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

/// What a payload stream carries.
enum class TransferKind : std::uint8_t {
    message,
    collective,
    request,
    response,
    lane,  // bytes of a lane whose link broke
};

/// Names a payload between two nodes: its header and its stream both carry the name, and either may
/// arrive first. `number` is the sequence of a message, the id of a call, or the position
/// of the first byte of a lane.
struct TransferName {
    TransferKind kind = TransferKind::message;
    ContextId context{};  // 0 for the payloads of calls and lanes
    std::uint64_t number = 0;
    wire::ContinuedLane lane = wire::ContinuedLane::none;

    friend bool operator==(const TransferName&, const TransferName&) noexcept = default;
};

/// `seed` keeps a peer from choosing names that all fall into one bucket.
struct TransferNameHash {
    std::uint64_t seed = 0;

    std::size_t operator()(const TransferName& name) const noexcept {
        const auto kind = static_cast<std::uint64_t>(name.kind);
        return mixed(name.number ^ mixed(seed ^ name.context.value() ^ kind << 61U));
    }
};

inline wire::Preamble preamble_of(const TransferName& name) noexcept {
    switch (name.kind) {
        case TransferKind::message:
        case TransferKind::collective:
            return {.lane = name.kind == TransferKind::message ? wire::Lane::bulk
                                                               : wire::Lane::collective,
                    .context = name.context,
                    .sequence = Sequence(name.number)};
        case TransferKind::lane:
            return {.lane = wire::Lane::continued, .continues = name.lane, .position = name.number};
        case TransferKind::request:
        case TransferKind::response:
            break;
    }
    return {.lane = wire::Lane::call,
            .call = wire::CallId(name.number),
            .part = name.kind == TransferKind::request ? wire::CallPart::request
                                                       : wire::CallPart::response};
}

/// nullopt when such a stream carries no payload.
inline std::optional<TransferName> name_of(const wire::Preamble& preamble) noexcept {
    switch (preamble.lane) {
        case wire::Lane::bulk:
        case wire::Lane::collective:
            return TransferName{.kind = preamble.lane == wire::Lane::bulk
                                            ? TransferKind::message
                                            : TransferKind::collective,
                                .context = preamble.context,
                                .number = preamble.sequence.value()};
        case wire::Lane::call:
            return TransferName{.kind = preamble.part == wire::CallPart::request
                                            ? TransferKind::request
                                            : TransferKind::response,
                                .number = preamble.call.value()};
        case wire::Lane::continued:
            return TransferName{.kind = TransferKind::lane,
                                .number = preamble.position,
                                .lane = preamble.continues};
        default:
            return std::nullopt;
    }
}

/// "message", "call", "answer" or "lane".
constexpr std::string_view noun(TransferKind kind) noexcept {
    switch (kind) {
        case TransferKind::message:
        case TransferKind::collective:
            return "message";
        case TransferKind::request:
            return "call";
        case TransferKind::lane:
            return "lane";
        case TransferKind::response:
            break;
    }
    return "answer";
}

}  // namespace nexar::engine
