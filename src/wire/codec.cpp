#include "wire/codec.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "wire/describe_membership.hpp"
#include "wire/describe_routing.hpp"
#include "wire/measurer.hpp"
#include "wire/reader.hpp"
#include "wire/writer.hpp"

namespace nexar::wire {

namespace {

[[gnu::cold, gnu::noinline]] Error does_not_fit(FrameType type, std::size_t needed,
                                                std::size_t given) {
    return {Errc::invalid_argument,
            fmt::format("cannot encode {}: it takes {} bytes, but the buffer has {}", name(type),
                        needed, given)};
}

[[gnu::cold, gnu::noinline]] Error wrong_body_size(const FrameHeader& header, std::size_t found) {
    const std::size_t needed = header.body_bytes;
    return found < needed
               ? decode_error(name(header.type), {FaultKind::truncated, "body", found, needed})
               : decode_error(name(header.type), {FaultKind::trailing, {}, found - needed});
}

template <class Message>
Measurer measure(const Message& message) {
    Measurer measurer;
    describe(measurer, message);
    return measurer;
}

std::size_t frame_bytes(const Measurer& measured) {
    return kFrameHeaderBytes + measured.fixed_bytes() + measured.extension_bytes();
}

template <class Message>
Result<Frame> decode_as(const FrameHeader& header, std::span<const std::byte> body) {
    NEXAR_TRY_VALUE(decoded, decode_body<Message>(header, body));
    return Frame{std::move(decoded.message), decoded.skipped_fields};
}

}  // namespace

template <class Message>
std::size_t encoded_size(const Message& message) {
    return frame_bytes(measure(message));
}

// Flattened, here and below, to get one call per frame and keep the fields in registers.
template <class Message>
[[gnu::flatten]] Result<std::size_t> encode(const Message& message, std::span<std::byte> out) {
    const Measurer measured = measure(message);
    if (measured.fault().any()) return encode_error(name(Message::kType), *measured.fault());
    const std::size_t size = frame_bytes(measured);
    if (out.size() < size) return does_not_fit(Message::kType, size, out.size());
    const std::size_t body = size - kFrameHeaderBytes;
    NEXAR_ASSERT(body <= rules_of(Message::kType)->max_body_bytes,
                 "the field limits add up to less than the frame limit");
    const FrameHeader header{
        .type = Message::kType,
        .extension_bytes = static_cast<std::uint16_t>(measured.extension_bytes()),
        .body_bytes = static_cast<std::uint32_t>(body)};
    Writer writer(out.first(size));
    describe(writer, header);
    describe(writer, message);
    NEXAR_ASSERT(writer.room() == 0, "Writer and Measurer follow the same description");
    return size;
}

template <class Message>
[[gnu::flatten]] Result<Decoded<Message>> decode_body(const FrameHeader& header,
                                                      std::span<const std::byte> body) {
    NEXAR_ASSERT(header.type == Message::kType, "the frame header determines the decoder");
    NEXAR_ASSERT(header.extension_bytes <= header.body_bytes, "from decode_frame_header");
    if (body.size() != header.body_bytes) return wrong_body_size(header, body.size());
    Decoded<Message> decoded;
    FirstFault fault;
    OptionalFields optional(body.last(header.extension_bytes), fault);
    Reader reader(body.first(body.size() - header.extension_bytes), optional, fault);
    describe(reader, decoded.message);
    reader.finish();
    if (fault.any()) return decode_error(name(Message::kType), *fault);
    decoded.skipped_fields = optional.skipped();
    return decoded;
}

Result<Frame> decode_frame(std::span<const std::byte> bytes) {
    NEXAR_TRY_VALUE(header, decode_frame_header(bytes));
    const auto body = bytes.subspan(kFrameHeaderBytes);
    switch (header.type) {
        case FrameType::hello:
            return decode_as<Hello>(header, body);
        case FrameType::welcome:
            return decode_as<Welcome>(header, body);
        case FrameType::error_report:
            return decode_as<ErrorReport>(header, body);
        case FrameType::heartbeat:
            return decode_as<Heartbeat>(header, body);
        case FrameType::credit:
            return decode_as<Credit>(header, body);
        case FrameType::grant:
            return decode_as<Grant>(header, body);
        case FrameType::withdraw:
            return decode_as<Withdraw>(header, body);
        case FrameType::confirm:
            return decode_as<Confirm>(header, body);
        case FrameType::abort:
            return decode_as<Abort>(header, body);
        case FrameType::link_offer:
            return decode_as<LinkOffer>(header, body);
        case FrameType::link_refusal:
            return decode_as<LinkRefusal>(header, body);
        case FrameType::link_ready:
            return decode_as<LinkReady>(header, body);
        case FrameType::moved:
            return decode_as<Moved>(header, body);
        case FrameType::eager:
            return decode_as<EagerHeader>(header, body);
        case FrameType::bulk:
            return decode_as<BulkHeader>(header, body);
        case FrameType::context_begin:
            return decode_as<ContextBegin>(header, body);
        case FrameType::context_end:
            return decode_as<ContextEnd>(header, body);
        case FrameType::collective:
            return decode_as<CollectiveHeader>(header, body);
        case FrameType::collective_mismatch:
            return decode_as<CollectiveMismatch>(header, body);
        case FrameType::collective_abort:
            return decode_as<CollectiveAbort>(header, body);
        case FrameType::request:
            return decode_as<Request>(header, body);
        case FrameType::response:
            return decode_as<Response>(header, body);
        case FrameType::cancel:
            return decode_as<Cancel>(header, body);
        case FrameType::proof:
            return decode_as<Proof>(header, body);
        case FrameType::join_request:
            return decode_as<JoinRequest>(header, body);
        case FrameType::admission:
            return decode_as<Admission>(header, body);
        case FrameType::view:
            return decode_as<ViewFrame>(header, body);
        case FrameType::formation:
            return decode_as<Formation>(header, body);
        case FrameType::renewal:
            return decode_as<Renewal>(header, body);
        case FrameType::link_report:
            return decode_as<LinkReport>(header, body);
        case FrameType::stored_tokens:
            return decode_as<StoredTokens>(header, body);
        case FrameType::stored_seed:
            return decode_as<StoredSeed>(header, body);
        case FrameType::suspicion:
            return decode_as<Suspicion>(header, body);
        case FrameType::ballot:
            return decode_as<Ballot>(header, body);
        case FrameType::revoke:
            return decode_as<Revoke>(header, body);
        case FrameType::agreement:
            return decode_as<Agreement>(header, body);
        case FrameType::new_world:
            return decode_as<NewWorld>(header, body);
        case FrameType::envelope:
            return decode_as<EnvelopeFrame>(header, body);
        case FrameType::link_state:
            return decode_as<LinkState>(header, body);
        case FrameType::path_request:
            return decode_as<PathRequest>(header, body);
    }
    NEXAR_ASSERT(false, "decode_frame_header accepts only known types");
    std::abort();
}

// NOLINTBEGIN(bugprone-macro-parentheses): the argument is a type
#define NEXAR_INSTANTIATE_CODEC(Message)                                       \
    template std::size_t encoded_size(const Message&);                         \
    template Result<std::size_t> encode(const Message&, std::span<std::byte>); \
    template Result<Decoded<Message>> decode_body<Message>(const FrameHeader&, \
                                                           std::span<const std::byte>)
// NOLINTEND(bugprone-macro-parentheses)

NEXAR_INSTANTIATE_CODEC(Hello);
NEXAR_INSTANTIATE_CODEC(Welcome);
NEXAR_INSTANTIATE_CODEC(ErrorReport);
NEXAR_INSTANTIATE_CODEC(Heartbeat);
NEXAR_INSTANTIATE_CODEC(Credit);
NEXAR_INSTANTIATE_CODEC(Grant);
NEXAR_INSTANTIATE_CODEC(Withdraw);
NEXAR_INSTANTIATE_CODEC(Confirm);
NEXAR_INSTANTIATE_CODEC(Abort);
NEXAR_INSTANTIATE_CODEC(LinkOffer);
NEXAR_INSTANTIATE_CODEC(LinkRefusal);
NEXAR_INSTANTIATE_CODEC(LinkReady);
NEXAR_INSTANTIATE_CODEC(Moved);
NEXAR_INSTANTIATE_CODEC(ContextBegin);
NEXAR_INSTANTIATE_CODEC(ContextEnd);
NEXAR_INSTANTIATE_CODEC(CollectiveHeader);
NEXAR_INSTANTIATE_CODEC(CollectiveMismatch);
NEXAR_INSTANTIATE_CODEC(CollectiveAbort);
NEXAR_INSTANTIATE_CODEC(EagerHeader);
NEXAR_INSTANTIATE_CODEC(BulkHeader);
NEXAR_INSTANTIATE_CODEC(Request);
NEXAR_INSTANTIATE_CODEC(Response);
NEXAR_INSTANTIATE_CODEC(Cancel);
NEXAR_INSTANTIATE_CODEC(Proof);
NEXAR_INSTANTIATE_CODEC(JoinRequest);
NEXAR_INSTANTIATE_CODEC(Admission);
NEXAR_INSTANTIATE_CODEC(ViewFrame);
NEXAR_INSTANTIATE_CODEC(Formation);
NEXAR_INSTANTIATE_CODEC(Renewal);
NEXAR_INSTANTIATE_CODEC(LinkReport);
NEXAR_INSTANTIATE_CODEC(StoredTokens);
NEXAR_INSTANTIATE_CODEC(StoredSeed);
NEXAR_INSTANTIATE_CODEC(Suspicion);
NEXAR_INSTANTIATE_CODEC(Ballot);
NEXAR_INSTANTIATE_CODEC(Revoke);
NEXAR_INSTANTIATE_CODEC(Agreement);
NEXAR_INSTANTIATE_CODEC(NewWorld);
NEXAR_INSTANTIATE_CODEC(EnvelopeFrame);
NEXAR_INSTANTIATE_CODEC(LinkState);
NEXAR_INSTANTIATE_CODEC(PathRequest);

#undef NEXAR_INSTANTIATE_CODEC

}  // namespace nexar::wire
