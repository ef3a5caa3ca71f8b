#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include "base/types.hpp"

#include "wire/messages.hpp"

namespace nexar::fuzz {

/// An input of the harness `engine` is a list of acts: the number of an act, then as many bytes as
/// it needs. The corpus depends on these numbers.
enum class Act : std::uint8_t {
    raw,        // lane, length: bytes as they are
    eager,      // context, which sequence, size (2), flags, tag: a header
    bulk,       // the same
    payload,    // length (2): payload bytes on the eager lane
    open,       // context, which sequence: a stream
    bytes,      // which stream, length (2)
    finish,     // which stream
    reset,      // which stream
    credit,     // pool, context, payload (2), headers
    grant,      // context, sequence
    withdraw,   // context, sequence, step
    send,       // to, size (2), flags
    receive,    // pattern, size (2), flags
    probe,      // pattern
    cancel,     // which operation
    take,       // pattern
    drop,       // which taken message
    use,        // which taken message, size (2): receives it
    release,    // which stream of ours, outcome
    room,       // lane, bytes
    make,       // context: this side makes it
    turn,       // the engine handles its events
    placement,  // whether bytes are placed directly
    down,       // the link goes down
    close,      // the engine is closed
    begin,      // context, flags: the peer introduces it
    leave,      // context: the peer has ended it
    end,        // which context: this side ends it
    collect,    // context, shape, size: this side calls a collective
    part,       // context, which sequence, operation, shape, size, flags, message: a header
    flow,       // context, which sequence, shape, size: a stream of a message of a collective
    abort,      // context, operation, rank
    mismatch,   // context, operation, which description
    time,       // quarters of a second
    no_more,
};

inline constexpr ContextId kFirstContext{100};  // made by this side
inline constexpr std::uint8_t kContexts = 8;

/// All other communicators are made from the first.
inline wire::ContextOrigin origin_of(ContextId context) {
    if (context == kFirstContext) return {};
    return {.parent = kFirstContext, .creation = context.value() - kFirstContext.value() - 1};
}

/// Reads an input from its front; past its end every byte is 0.
class Script {
public:
    explicit Script(std::span<const std::byte> input) noexcept : rest_(input) {}

    bool done() const noexcept { return rest_.empty(); }

    std::uint8_t byte() noexcept {
        if (rest_.empty()) return 0;
        const auto value = std::to_integer<std::uint8_t>(rest_.front());
        rest_ = rest_.subspan(1);
        return value;
    }

    std::uint16_t word() noexcept {
        const unsigned low = byte();
        return static_cast<std::uint16_t>(low | (unsigned{byte()} << 8U));
    }

    Act act() noexcept { return static_cast<Act>(byte() % static_cast<unsigned>(Act::no_more)); }

    ContextId context() noexcept { return ContextId(kFirstContext.value() + byte() % kContexts); }

    std::span<const std::byte> bytes(std::size_t most) noexcept {
        const auto taken = rest_.first(std::min(most, rest_.size()));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }

private:
    std::span<const std::byte> rest_;
};

}  // namespace nexar::fuzz
