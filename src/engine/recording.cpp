#include "engine/recording.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string_view>

#include "engine/agreement.hpp"
#include "engine/call.hpp"
#include "engine/collective.hpp"
#include "engine/context.hpp"
#include "engine/operation.hpp"

namespace nexar::engine {

namespace {

std::uint32_t subject_of(const Pattern& pattern) noexcept {
    return pattern.source ? pattern.source->value() : kAnyRank;
}

std::uint64_t tag_of(const Pattern& pattern) noexcept {
    return pattern.tag ? pattern.tag->value() : kAnyTag;
}

std::uint64_t big_endian(std::span<const std::byte> bytes) noexcept {
    std::uint64_t word = 0;
    for (const std::byte byte : bytes) word = word << 8U | std::to_integer<std::uint64_t>(byte);
    return word;
}

std::uint64_t function_of(const CallOperation& call) noexcept {
    if (call.name.empty()) return call.function;
    std::uint64_t word = 0;
    for (std::size_t i = std::min<std::size_t>(call.name.size(), sizeof word); i > 0; --i) {
        word = word << 8U | static_cast<unsigned char>(call.name[i - 1]);
    }
    return word;
}

/// The arguments of an event, without its outcome.
struct Arguments {
    EventKind kind{};  // of the start
    std::uint32_t subject = 0;
    std::uint64_t c = 0;
    std::uint64_t d = 0;
};

Arguments arguments_of(const SendOperation& send) noexcept {
    std::uint64_t bytes = 0;
    for (const port::ConstBytes region : send.content) bytes += region.size();
    return {EventKind::send_started, send.to.value(), send.tag.value(), bytes};
}

Arguments arguments_of(const Operation& operation, const Pattern& pattern, EventKind kind,
                       bool found) noexcept {
    if (!found) return {kind, subject_of(pattern), tag_of(pattern), 0};
    const Envelope& envelope = operation.envelope;
    return {kind, envelope.source.value(), envelope.tag.value(), envelope.bytes};
}

Arguments arguments_of(const Operation& operation, bool ended) noexcept {
    const bool found = ended && !operation.error;
    switch (operation.kind()) {
        case Operation::Kind::send:
            return arguments_of(static_cast<const SendOperation&>(operation));
        case Operation::Kind::receive: {
            const auto& receive = static_cast<const ReceiveOperation&>(operation);
            auto made = arguments_of(receive, receive.pattern, EventKind::receive_started, found);
            if (!ended) made.d = receive.capacity();
            return made;
        }
        case Operation::Kind::probe: {
            const auto& probe = static_cast<const ProbeOperation&>(operation);
            return arguments_of(probe, probe.pattern, EventKind::probe_started, found);
        }
        case Operation::Kind::call: {
            const auto& call = static_cast<const CallOperation&>(operation);
            return {EventKind::call_started, call.to.value(), function_of(call),
                    ended ? call.response.size() : call.content.size()};
        }
        case Operation::Kind::agreement: {
            const auto& agreement = static_cast<const AgreeOperation&>(operation);
            return {EventKind::agreement_started, static_cast<std::uint32_t>(agreement.what),
                    agreement.number, ended ? agreement.agreed_flags : agreement.flags};
        }
        case Operation::Kind::collective:
            break;
    }
    const auto& collective = static_cast<const CollectiveOperation&>(operation);
    return {EventKind::collective_started, static_cast<std::uint32_t>(collective.terms.what),
            collective.number, collective.terms.count * collective.terms.element_bytes};
}

}  // namespace

void Recording::record(const Operation& operation, Phase phase,
                       std::uint16_t detail) const noexcept {
    const bool ended = phase == Phase::ended;
    if (ended && operation.error) detail = static_cast<std::uint16_t>(operation.error->code());
    const Arguments arguments = arguments_of(operation, ended);
    // The kinds of one operation follow each other: started, ended, waits.
    const auto kind = static_cast<EventKind>(static_cast<std::uint16_t>(arguments.kind) +
                                             static_cast<std::uint16_t>(phase));
    recorder_->record({.time = now_,
                       .kind = kind,
                       .a = operation.context->index,
                       .b = event_word(arguments.subject, detail),
                       .c = arguments.c,
                       .d = arguments.d});
}

void Recording::record(const Operation& collective, Rank to, std::uint64_t bytes,
                       WaitReason reason) const noexcept {
    recorder_->record({.time = now_,
                       .kind = EventKind::collective_waits,
                       .a = collective.context->index,
                       .b = event_word(to.value(), static_cast<std::uint16_t>(reason)),
                       .c = static_cast<const CollectiveOperation&>(collective).number,
                       .d = bytes});
}

void Recording::record_sent(const Context& context, Rank to, Tag tag,
                            std::uint64_t bytes) const noexcept {
    for (const EventKind kind : {EventKind::send_started, EventKind::send_ended}) {
        recorder_->record({.time = now_,
                           .kind = kind,
                           .a = context.index,
                           .b = event_word(to.value()),
                           .c = tag.value(),
                           .d = bytes});
    }
}

void Recording::record(const Context& context, const Envelope& envelope) const noexcept {
    recorder_->record({.time = now_,
                       .kind = EventKind::message_matched,
                       .a = context.index,
                       .b = event_word(envelope.source.value()),
                       .c = envelope.tag.value(),
                       .d = envelope.bytes});
}

void Recording::record(EventKind kind, const NodeId& node, std::uint16_t reason) const noexcept {
    const std::span<const std::byte> bytes(node.bytes());
    recorder_->record({.time = now_,
                       .kind = kind,
                       .a = reason,
                       .c = big_endian(bytes.first<8>()),
                       .d = big_endian(bytes.last<8>())});
}

void Recording::record(EventKind kind, const Context& context) const noexcept {
    recorder_->record({.time = now_,
                       .kind = kind,
                       .a = context.index,
                       .b = static_cast<std::uint32_t>(context.pairs.size()),
                       .c = context.id.value(),
                       .d = context.me.value()});
}

}  // namespace nexar::engine
