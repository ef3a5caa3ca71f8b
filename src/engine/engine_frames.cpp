// Dispatches frames and payload streams to the parts of the engine.

#include <fmt/format.h>

#include "base/try.hpp"
#include "engine/engine.hpp"
#include "wire/codec.hpp"
#include "wire/plain_eager.hpp"

namespace nexar::engine {

std::size_t Engine::on_eager(Peer& peer, port::ConstBytes bytes) {
    const auto header = wire::decode_plain_eager(bytes);
    Pair* const pair = peer.last_pair;
    if (!header || pair == nullptr || pair->context_id != header->context) return 0;
    const port::ConstBytes behind = bytes.subspan(wire::kPlainEagerBytes);
    if (!messages_.take_at_once(peer, *pair, *header, behind)) return 0;
    return wire::kPlainEagerBytes + static_cast<std::size_t>(header->size);
}

Result<LanePayload> Engine::on_frame(Peer& peer, const wire::FrameHeader& header,
                                     port::ConstBytes body) {
    switch (header.type) {
        case wire::FrameType::eager: {
            NEXAR_TRY_VALUE(eager, wire::decode_body<wire::EagerHeader>(header, body));
            NEXAR_TRY_VALUE(pair, introduced_pair(peer, eager.message.context));
            return messages_.on_header(peer, *pair, eager.message, false);
        }
        case wire::FrameType::bulk: {
            NEXAR_TRY_VALUE(bulk, wire::decode_body<wire::BulkHeader>(header, body));
            NEXAR_TRY_VALUE(pair, introduced_pair(peer, bulk.message.context));
            return messages_.on_header(peer, *pair, bulk.message, true);
        }
        case wire::FrameType::collective:
        case wire::FrameType::collective_mismatch:
        case wire::FrameType::collective_abort:
            return on_collective_frame(peer, header, body);
        case wire::FrameType::request:
        case wire::FrameType::response:
        case wire::FrameType::cancel:
            return calls_.on_frame(peer, header, body);
        case wire::FrameType::credit: {
            NEXAR_TRY_VALUE(credit, wire::decode_body<wire::Credit>(header, body));
            NEXAR_TRY(on_credit(peer, credit.message));
            return LanePayload{};
        }
        case wire::FrameType::grant: {
            NEXAR_TRY_VALUE(grant, wire::decode_body<wire::Grant>(header, body));
            NEXAR_TRY(messages_.on_grant(peer, grant.message));
            return LanePayload{};
        }
        case wire::FrameType::withdraw: {
            NEXAR_TRY_VALUE(withdraw, wire::decode_body<wire::Withdraw>(header, body));
            NEXAR_TRY(messages_.on_withdraw(peer, withdraw.message));
            return LanePayload{};
        }
        case wire::FrameType::context_begin: {
            ++rare_frames_;
            NEXAR_TRY_VALUE(begun, wire::decode_body<wire::ContextBegin>(header, body));
            NEXAR_TRY(on_context_begin(peer, begun.message));
            return LanePayload{};
        }
        case wire::FrameType::context_end: {
            ++rare_frames_;
            NEXAR_TRY_VALUE(ended, wire::decode_body<wire::ContextEnd>(header, body));
            NEXAR_TRY(on_context_end(peer, ended.message));
            return LanePayload{};
        }
        case wire::FrameType::error_report: {
            ++rare_frames_;
            NEXAR_TRY_VALUE(report, wire::decode_body<wire::ErrorReport>(header, body));
            on_report(peer, report.message);
            return LanePayload{};
        }
        case wire::FrameType::link_offer: {
            ++rare_frames_;
            NEXAR_TRY_VALUE(offer, wire::decode_body<wire::LinkOffer>(header, body));
            NEXAR_TRY(on_link_news(peer, offer.message));
            return LanePayload{};
        }
        case wire::FrameType::link_refusal: {
            ++rare_frames_;
            NEXAR_TRY_VALUE(refusal, wire::decode_body<wire::LinkRefusal>(header, body));
            NEXAR_TRY(on_link_news(peer, refusal.message));
            return LanePayload{};
        }
        case wire::FrameType::link_ready: {
            NEXAR_TRY_VALUE(ready, wire::decode_body<wire::LinkReady>(header, body));
            NEXAR_TRY(on_link_news(peer, ready.message));
            return LanePayload{};
        }
        case wire::FrameType::abort: {
            ++rare_frames_;
            NEXAR_TRY_VALUE(abort, wire::decode_body<wire::Abort>(header, body));
            NEXAR_TRY(hear_abort(abort.message, &peer));
            return LanePayload{};
        }
        case wire::FrameType::agreement: {
            ++rare_frames_;
            NEXAR_TRY_VALUE(agreement, wire::decode_body<wire::Agreement>(header, body));
            NEXAR_TRY(agreements_.handle(peer.node, agreement.message));
            return LanePayload{};
        }
        case wire::FrameType::heartbeat:
        case wire::FrameType::suspicion:
        case wire::FrameType::ballot:
        case wire::FrameType::view:
            NEXAR_TRY(on_membership_frame(peer, header, body));
            return LanePayload{};
        case wire::FrameType::link_state:
        case wire::FrameType::path_request:
            NEXAR_TRY(on_routing_frame(peer, header, body));
            return LanePayload{};
        case wire::FrameType::new_world: {
            ++rare_frames_;
            NEXAR_TRY_VALUE(world, wire::decode_body<wire::NewWorld>(header, body));
            if (!new_world_) new_world_ = std::move(world.message);
            return LanePayload{};
        }
        case wire::FrameType::revoke: {
            ++rare_frames_;
            NEXAR_TRY_VALUE(revoke, wire::decode_body<wire::Revoke>(header, body));
            NEXAR_TRY(on_revoke(peer, revoke.message));
            return LanePayload{};
        }
        default:
            return Error(Errc::protocol_violation,
                         fmt::format("the peer sent a frame of type {} where it is not allowed",
                                     wire::name(header.type)));
    }
}

template <class Message>
Result<void> Engine::on_link_news(Peer& peer, const Message& message) {
    constexpr std::size_t kMostNews = 16;
    if (++peer.link_news > kMostNews) {
        return Error(Errc::limit_exceeded, "the peer sent too many frames about links");
    }
    link_news_.push_back({.node = peer.node, .message = message});
    return {};
}

Result<LanePayload> Engine::on_collective_frame(Peer& peer, const wire::FrameHeader& header,
                                                port::ConstBytes body) {
    if (header.type == wire::FrameType::collective) {
        NEXAR_TRY_VALUE(decoded, wire::decode_body<wire::CollectiveHeader>(header, body));
        NEXAR_TRY_VALUE(pair, introduced_pair(peer, decoded.message.context));
        return collectives_.on_header(peer, *pair, decoded.message);
    }
    if (header.type == wire::FrameType::collective_mismatch) {
        NEXAR_TRY_VALUE(mismatch, wire::decode_body<wire::CollectiveMismatch>(header, body));
        NEXAR_TRY_VALUE(pair, introduced_pair(peer, mismatch.message.context));
        NEXAR_TRY(collectives_.on_mismatch(*pair, mismatch.message));
        return LanePayload{};
    }
    NEXAR_TRY_VALUE(abort, wire::decode_body<wire::CollectiveAbort>(header, body));
    NEXAR_TRY_VALUE(pair, introduced_pair(peer, abort.message.context));
    NEXAR_TRY(collectives_.on_abort(*pair, abort.message));
    return LanePayload{};
}

Result<void> Engine::on_credit(Peer& peer, const wire::Credit& credit) {
    if (credit.pool == wire::CreditPool::shared) return messages_.on_credit(peer, nullptr, credit);
    const auto found = peer.pairs.find(credit.context);
    if (found == peer.pairs.end()) return {};  // the communicator ended in the meantime
    Pair& pair = *found->second;
    if (credit.pool == wire::CreditPool::communicator) {
        return messages_.on_credit(peer, &pair, credit);
    }
    return collectives_.on_credit(peer, pair, credit);
}

Result<Awaited> Engine::look_up(Peer& peer, const TransferName& name) {
    switch (name.kind) {
        case TransferKind::message:
            return Messages::look_up(peer, name);
        case TransferKind::collective:
            return CollectiveRunner::look_up(peer, name);
        case TransferKind::request:
        case TransferKind::response:
        case TransferKind::lane:  // does not reach the owner
            break;
    }
    return Calls::look_up(peer, name);
}

void Engine::on_writable(Peer& peer, port::Lane lane) {
    if (lane == port::Lane::rpc) calls_.drain(peer);
    if (lane != port::Lane::eager) return;
    messages_.drain(peer);
    collectives_.drain(peer);
}

}  // namespace nexar::engine
