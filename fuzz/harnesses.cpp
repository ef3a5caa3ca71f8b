#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "harness.hpp"
#include "wire/codec.hpp"
#include "wire/plain_envelope.hpp"
#include "wire_oracle.hpp"

namespace nexar::fuzz {

namespace {

template <typename Message>
void put_right(std::vector<std::byte>& frame) {
    const std::size_t body = frame.size() - wire::kFrameHeaderBytes;
    frame[0] = std::byte{wire::kProtocolVersion};
    frame[1] = static_cast<std::byte>(Message::kType);
    for (unsigned i = 0; i < 4; ++i) frame[4 + i] = static_cast<std::byte>(body >> (8 * i));
}

/// The decoder of one message. Corrects version, type and body_bytes of the input before decoding,
/// so that no execution is wasted on them.
template <typename Message>
bool accepts_message(std::span<const std::byte> input) {
    if (input.size() < wire::kFrameHeaderBytes) return false;
    std::vector<std::byte> frame(input.begin(), input.end());
    put_right<Message>(frame);
    const auto header = wire::decode_frame_header(frame);
    if (!header) return false;
    const auto decoded = wire::decode_body<Message>(
        *header, std::span<const std::byte>(frame).subspan(wire::kFrameHeaderBytes));
    if (!decoded) return false;
    check_canonical(frame, decoded->message, decoded->skipped_fields != 0);
    return true;
}

/// Also checks that the decoder for relays, which copies nothing, agrees with
/// the other one.
bool accepts_envelope(std::span<const std::byte> input) {
    if (input.size() < wire::kFrameHeaderBytes) return false;
    std::vector<std::byte> frame(input.begin(), input.end());
    put_right<wire::EnvelopeFrame>(frame);
    const auto view = wire::decode_envelope(frame);
    const bool accepted = accepts_message<wire::EnvelopeFrame>(input);
    NEXAR_ASSERT(view.has_value() == accepted, "both decoders must accept the same envelopes");
    if (!accepted) return false;
    const auto decoded = wire::decode_frame(frame);
    const auto& whole = std::get<wire::EnvelopeFrame>(decoded->message);
    NEXAR_ASSERT(static_cast<const wire::Envelope&>(whole) == *view,
                 "both decoders must read the same fields");
    NEXAR_ASSERT(std::ranges::equal(whole.packet, view->packet),
                 "both decoders must find the same packet");
    wire::set_hops(frame, wire::kMaxHops);
    const auto front =
        wire::encode_envelope(wire::decode_envelope(frame).value(), view->packet.size());
    NEXAR_ASSERT(std::ranges::equal(front, std::span(frame).first(front.size())) ||
                     decoded->skipped_fields != 0,
                 "an envelope must have only one encoding");
    return true;
}

constexpr auto kHarnesses = std::to_array<Harness>({
    {"preamble", accepts_preamble},
    {"frame", accepts_frame},
    {"certificate", accepts_certificate},
    {"hello", accepts_message<wire::Hello>},
    {"welcome", accepts_message<wire::Welcome>},
    {"error_report", accepts_message<wire::ErrorReport>},
    {"heartbeat", accepts_message<wire::Heartbeat>},
    {"credit", accepts_message<wire::Credit>},
    {"grant", accepts_message<wire::Grant>},
    {"withdraw", accepts_message<wire::Withdraw>},
    {"confirm", accepts_message<wire::Confirm>},
    {"abort", accepts_message<wire::Abort>},
    {"link_offer", accepts_message<wire::LinkOffer>},
    {"link_refusal", accepts_message<wire::LinkRefusal>},
    {"link_ready", accepts_message<wire::LinkReady>},
    {"moved", accepts_message<wire::Moved>},
    {"context_begin", accepts_message<wire::ContextBegin>},
    {"context_end", accepts_message<wire::ContextEnd>},
    {"collective", accepts_message<wire::CollectiveHeader>},
    {"collective_mismatch", accepts_message<wire::CollectiveMismatch>},
    {"collective_abort", accepts_message<wire::CollectiveAbort>},
    {"agreement", accepts_message<wire::Agreement>},
    {"eager", accepts_message<wire::EagerHeader>},
    {"bulk", accepts_message<wire::BulkHeader>},
    {"request", accepts_message<wire::Request>},
    {"response", accepts_message<wire::Response>},
    {"cancel", accepts_message<wire::Cancel>},
    {"proof", accepts_message<wire::Proof>},
    {"join_request", accepts_message<wire::JoinRequest>},
    {"admission", accepts_message<wire::Admission>},
    {"view", accepts_message<wire::ViewFrame>},
    {"formation", accepts_message<wire::Formation>},
    {"renewal", accepts_message<wire::Renewal>},
    {"link_report", accepts_message<wire::LinkReport>},
    {"stored_tokens", accepts_message<wire::StoredTokens>},
    {"stored_seed", accepts_message<wire::StoredSeed>},
    {"suspicion", accepts_message<wire::Suspicion>},
    {"ballot", accepts_message<wire::Ballot>},
    {"revoke", accepts_message<wire::Revoke>},
    {"new_world", accepts_message<wire::NewWorld>},
    {"envelope", accepts_envelope},
    {"link_state", accepts_message<wire::LinkState>},
    {"path_request", accepts_message<wire::PathRequest>},
    {"join_string", accepts_join_string},
    {"quic_datagram", accepts_quic_datagram},
    {"engine", accepts_engine},
    {"launch", accepts_launch},
    {"node_list", accepts_node_list},
    {"calls", accepts_calls},
    {"quic_pair", accepts_quic_pair},
    {"shm_handshake", accepts_shm_handshake},
    {"shm_ring", accepts_shm_ring},
});

}  // namespace

std::span<const Harness> harnesses() noexcept {
    return kHarnesses;
}

const Harness* find_harness(std::string_view name) noexcept {
    const auto* const found = std::ranges::find(kHarnesses, name, &Harness::name);
    return found == kHarnesses.end() ? nullptr : found;
}

}  // namespace nexar::fuzz
