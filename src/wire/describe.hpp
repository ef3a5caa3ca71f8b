#pragma once

#include <algorithm>
#include <concepts>
#include <type_traits>

#include "wire/fault.hpp"
#include "wire/limits.hpp"
#include "wire/messages.hpp"
#include "wire/preamble.hpp"
#include "wire/scalar.hpp"

/// One description per layout: Measurer, Writer and Reader execute the same lines, so that encoder
/// and decoder cannot differ. The order of lines is the order of bytes: first the fixed fields,
/// then the optional ones with ascending ids, then the rules.
namespace nexar::wire {

template <class M, class Message>
concept Of = std::same_as<std::remove_const_t<M>, Message>;

/// The first kPreambleBytes, which determine how many follow.
template <class Io>
void describe_common(Io& io, Of<Preamble> auto& m) {
    io.constant("magic", load<std::uint32_t>(kMagic.data()), FaultKind::wrong_constant);
    io.constant("version", kProtocolVersion, FaultKind::wrong_version);
    io.choice("lane", m.lane, Lane::control, Lane::continued, FaultKind::unknown_value);
    io.number("attempt", m.attempt);
    io.rule([&] { return names_content(m.lane) || m.attempt == 0; }, "attempt", m.attempt,
            "it must be 0 on a lane");
    io.rule([&] { return m.lane != Lane::file; }, "lane", static_cast<std::uint64_t>(m.lane),
            "it must be one that is used on a stream");
}

template <class Io>
void describe(Io& io, Of<Preamble> auto& m) {
    describe_common(io, m);
    if (names_message(m.lane)) {
        io.number("context", m.context);
        io.number("sequence", m.sequence);
    }
    if (m.lane == Lane::call) {
        io.number("call", m.call);
        io.choice("part", m.part, CallPart::request, CallPart::response, FaultKind::unknown_value);
    }
    if (m.lane == Lane::continued) {
        io.choice("continues", m.continues, ContinuedLane::control, ContinuedLane::eager,
                  FaultKind::unknown_value);
        io.number("position", m.position);
    }
    io.rule([&] { return m.lane == Lane::continued || m.continues == ContinuedLane::none; },
            "continues", static_cast<std::uint64_t>(m.continues),
            "it must be 0 except on a continued lane");
    io.rule([&] { return m.lane == Lane::continued || m.position == 0; }, "position", m.position,
            "it must be 0 except on a continued lane");
    io.rule([&] { return m.lane == Lane::call || m.call == CallId(0); }, "call", m.call.value(),
            "it must be 0 except on a call lane");
    io.rule([&] { return m.lane == Lane::call || m.part == CallPart::none; }, "part",
            static_cast<std::uint64_t>(m.part), "it must be 0 except on a call lane");
    io.rule([&] { return names_message(m.lane) || m.context == ContextId(0); }, "context",
            m.context.value(), "it must be 0 except on a bulk or collective lane");
    io.rule([&] { return names_message(m.lane) || m.sequence == Sequence(0); }, "sequence",
            m.sequence.value(), "it must be 0 except on a bulk or collective lane");
}

/// Only the layout; the limits depend on the type, see decode_frame_header.
template <class Io>
void describe(Io& io, Of<FrameHeader> auto& m) {
    io.constant("version", kProtocolVersion, FaultKind::wrong_version);
    io.number("type", m.type);
    io.number("extension_bytes", m.extension_bytes);
    io.number("body_bytes", m.body_bytes);
}

template <class Io, class Message>
void describe_message_header(Io& io, Message& m, Bounds size) {
    io.number("context", m.context);
    io.number("sequence", m.sequence);
    io.number("tag", m.tag);
    io.number("size", m.size, size);
    io.flags("flags", m.awaits_grant, m.synchronous, m.from_reserve);
    io.choice("codec", m.codec, PayloadCodec::none, PayloadCodec::none, FaultKind::not_supported);
}

template <class Io>
void describe(Io& io, Of<EagerHeader> auto& m) {
    describe_message_header(io, m, {0, kMaxEagerBytes});
    io.rule([&] { return !m.awaits_grant; }, "awaits_grant", 1,
            "it must be 0: the payload follows at once");
}

template <class Io>
void describe(Io& io, Of<BulkHeader> auto& m) {
    describe_message_header(io, m, {1, kMaxByteCount});
}

template <class Io>
void describe(Io& io, Of<Hello> auto& m) {
    io.number("min_version", m.min_version, {1, 255});
    io.number("max_version", m.max_version, {1, 255});
    io.number("features", m.features);
    io.number("epoch", m.epoch);
    io.text("software", m.software, {0, kMaxSoftwareBytes});
    io.optional(1, "wanted_rank", m.wanted_rank);
    io.optional(2, "host_id", m.host_id);
    io.rule([&] { return m.min_version <= m.max_version; }, "min_version", m.min_version,
            "it must be at most max_version");
}

template <class Io>
void describe(Io& io, Of<Setting> auto& m) {
    io.text("name of a setting", m.name, {1, kMaxSettingNameBytes});
    io.text("value of a setting", m.value, {0, kMaxSettingValueBytes});
    io.text("origin of a setting", m.origin, {0, kMaxSettingOriginBytes});
}

template <class Io>
void describe(Io& io, Of<Welcome> auto& m) {
    io.number("version", m.version, {1, 255});
    io.number("features", m.features);
    io.number("epoch", m.epoch);
    io.number("rank", m.rank);
    io.number("world_size", m.world_size, {1, kMaxWorldSize});
    io.number("payload_credit_bytes", m.payload_credit_bytes, {0, kMaxByteCount});
    io.number("header_credits", m.header_credits);
    io.list("settings", m.settings, kMaxSettings);
    io.rule([&] { return m.rank.value() < m.world_size; }, "rank", m.rank.value(),
            "it must be below world_size");
    const auto unordered = [&] {
        return std::ranges::adjacent_find(m.settings, std::ranges::greater_equal{}, &Setting::name);
    };
    io.rule([&] { return unordered() == m.settings.end(); }, "number of settings",
            m.settings.size(), "names must strictly ascend");
}

template <class Io>
void describe(Io& io, Of<ErrorReport> auto& m) {
    io.number("code", m.code, {1, 0xffff});
    io.number("epoch", m.epoch);
    io.text("text", m.text, {0, kMaxReportTextBytes});
    io.optional(1, "rank", m.rank);
    io.optional(2, "context", m.context);
    io.optional(3, "sequence", m.sequence);
}

template <class Io>
void describe(Io& io, Of<Heartbeat> auto& m) {
    io.number("epoch", m.epoch);
    io.number("number", m.number);
    io.number("sent_at", m.sent_at);
    io.number("echo", m.echo);
    io.number("echo_delay", m.echo_delay);
    io.number("counter", m.counter);
    io.boolean("wants_answer", m.wants_answer);
}

template <class Io>
void describe(Io& io, Of<Credit> auto& m) {
    io.choice("pool", m.pool, CreditPool::shared, CreditPool::collective_reserve,
              FaultKind::unknown_value);
    io.number("context", m.context);
    io.number("payload_bytes", m.payload_bytes, {0, kMaxByteCount});
    io.number("headers", m.headers);
    io.rule([&] { return m.pool != CreditPool::shared || m.context == ContextId(0); }, "context",
            m.context.value(), "it must be 0 for the shared pool");
    io.rule([&] { return m.payload_bytes != 0 || m.headers != 0; }, "payload_bytes", 0,
            "it may be 0 only if headers is not");
}

template <class Io>
void describe(Io& io, Of<Grant> auto& m) {
    io.number("context", m.context);
    io.number("sequence", m.sequence);
    io.number("window_bytes", m.window_bytes, {0, kMaxByteCount});
    io.bytes("link", m.link, kMaxLinkBytes);
}

template <class Io>
void describe(Io& io, Of<Withdraw> auto& m) {
    io.number("context", m.context);
    io.number("sequence", m.sequence);
    io.choice("step", m.step, WithdrawStep::asked, WithdrawStep::received,
              FaultKind::unknown_value);
}

template <class Io>
void describe(Io& io, Of<Confirm> auto& m) {
    io.number("epoch", m.epoch);
}

template <class Io>
void describe(Io& io, Of<LinkOffer> auto& m) {
    io.text("kind", m.kind, {1, kMaxLinkKindBytes});
    io.bytes("invitation", m.invitation, kMaxLinkBytes);
}

template <class Io>
void describe(Io& io, Of<LinkRefusal> auto& m) {
    io.text("kind", m.kind, {1, kMaxLinkKindBytes});
    io.text("why", m.why, {0, kMaxReportTextBytes});
}

template <class Io>
void describe(Io& io, Of<LinkReady> auto& m) {
    io.text("kind", m.kind, {1, kMaxLinkKindBytes});
}

template <class Io>
void describe(Io& io, Of<Moved> auto& m) {
    io.number("position", m.position);
}

template <class Io>
void describe(Io& io, Of<Abort> auto& m) {
    io.number("code", m.code);
    io.number("rank", m.rank);
    io.text("text", m.text, {0, kMaxReportTextBytes});
}

template <class Io>
void describe(Io& io, Of<ContextOrigin> auto& m) {
    io.number("parent", m.parent);
    io.number("creation", m.creation);
    io.number("colour", m.colour);
    io.number("epoch", m.epoch);
}

template <class Io>
void describe(Io& io, Of<ContextBegin> auto& m) {
    io.number("context", m.context);
    describe(io, m.origin);
    io.number("rank", m.rank);
    io.number("size", m.size, {1, kMaxWorldSize});
    io.rule([&] { return m.rank.value() < m.size; }, "rank", m.rank.value(),
            "it must be below size");
}

template <class Io>
void describe(Io& io, Of<ContextEnd> auto& m) {
    io.number("context", m.context);
    io.number("collectives", m.collectives);
}

template <class Io>
void describe(Io& io, Of<WorldMember> auto& m) {
    io.array("node", m.node);
}

template <class Io>
void describe(Io& io, Of<NewWorld> auto& m) {
    io.number("context", m.context);
    describe(io, m.origin);
    io.list("members", m.members, kMaxViewMembers);
    io.number("senders", m.senders, {0, kMaxViewMembers});
    io.rule([&] { return m.members.size() >= 2; }, "number of members", m.members.size(),
            "there must be at least 2");
}

/// The limits for the size of a payload depend on its place.
template <class Io, class Message>
void describe_payload_rules(Io& io, Message& m) {
    io.rule([&] { return m.place == PayloadPlace::stream || m.size <= kMaxEagerBytes; }, "size",
            m.size, "it must be at most 65536 on the lane");
    io.rule([&] { return m.place == PayloadPlace::lane || m.size != 0; }, "size", 0,
            "it must be at least 1 on a stream");
}

template <class Io>
void describe(Io& io, Of<CollectiveHeader> auto& m) {
    io.number("context", m.context);
    io.number("sequence", m.sequence);
    io.number("operation", m.operation);
    io.number("message", m.message);
    io.number("size", m.size, {0, kMaxByteCount});
    io.number("fingerprint", m.fingerprint);
    io.choice("place", m.place, PayloadPlace::lane, PayloadPlace::stream, FaultKind::unknown_value);
    io.boolean("from_reserve", m.from_reserve);
    io.choice("codec", m.codec, PayloadCodec::none, PayloadCodec::none, FaultKind::not_supported);
    describe_payload_rules(io, m);
}

template <class Io>
void describe(Io& io, Of<CollectiveMismatch> auto& m) {
    io.number("context", m.context);
    io.number("operation", m.operation);
    io.number("expects", m.expects, {0, kMaxByteCount});
    io.text("description", m.description, {0, kMaxReportTextBytes});
}

template <class Io>
void describe(Io& io, Of<CollectiveAbort> auto& m) {
    io.number("context", m.context);
    io.number("operation", m.operation);
    io.number("code", m.code, {1, 0xffff});
    io.number("rank", m.rank);
    io.boolean("gone", m.gone);
    io.text("text", m.text, {0, kMaxReportTextBytes});
}

template <class Io, class Message>
void describe_payload(Io& io, Message& m) {
    io.number("size", m.size, {0, kMaxByteCount});
    io.choice("place", m.place, PayloadPlace::lane, PayloadPlace::stream, FaultKind::unknown_value);
    describe_payload_rules(io, m);
}

template <class Io>
void describe(Io& io, Of<Request> auto& m) {
    io.number("call", m.call);
    io.number("time_left", m.time_left);
    io.number("function", m.function);
    io.text("name", m.name, {0, kMaxFunctionNameBytes});
    describe_payload(io, m);
    io.rule([&] { return m.name.empty() || m.function == 0; }, "function", m.function,
            "it must be 0 if there is a name");
}

template <class Io>
void describe(Io& io, Of<Response> auto& m) {
    io.number("call", m.call);
    io.number("code", m.code);
    io.text("text", m.text, {0, kMaxReportTextBytes});
    describe_payload(io, m);
    io.rule([&] { return m.code != Errc{} || m.text.empty(); }, "text length", m.text.size(),
            "it must be 0 if the call succeeded");
    io.rule([&] { return m.code == Errc{} || m.size == 0; }, "size", m.size,
            "it must be 0 if the call failed");
}

template <class Io>
void describe(Io& io, Of<Cancel> auto& m) {
    io.number("call", m.call);
}

}  // namespace nexar::wire
