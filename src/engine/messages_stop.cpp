// How messages end because the members of the cluster change, while links to other peers go on.

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/messages.hpp"

namespace nexar::engine {

void Messages::stop(Context& context, const Error& reason) {
    abort(context, reason);
    std::vector<SendOperation*> local;
    for (SendOperation* send = locals_.first(); send != nullptr;
         send = decltype(locals_)::after(*send)) {
        if (send->context == &context) local.push_back(send);
    }
    for (SendOperation* const send : local) {
        cancel_local(*send, reason.within({.operation = "send"}));
    }
    for (Pair* const pair : context.pairs) {
        if (pair == nullptr) continue;
        end_sends(*pair->peer, &context, reason);
        end_arriving(*pair, reason);
    }
    for (Arrived* const arrived : context.matcher.all_arrived()) {
        auto& message = static_cast<InMessage&>(*arrived);
        if (message.failure) continue;  // it ends when the link has let go of its stream
        context.matcher.remove(message);
        if (message.peer != nullptr) give_back(message);
        refuse_payload(message);
    }
}

void Messages::halt(Peer& peer, const Error& reason) {
    end_sends(peer, nullptr, reason);
    std::vector<ReceiveOperation*> receives;
    for (InMessage* message = peer.messages.incomplete.first(); message != nullptr;
         message = decltype(peer.messages.incomplete)::after(*message)) {
        if (message->receiver != nullptr) receives.push_back(message->receiver);
    }
    for (ReceiveOperation* const receive : receives) {
        let_go(*receive, reason.within({.rank = public_rank(receive->matched->source),
                                        .operation = "receive"}));
    }
}

void Messages::end_receives(Peer& peer, const Error& reason) {
    for (const auto& [id, pair] : peer.pairs) {
        if (pair->context != nullptr) end_receives_of(*pair->context, *pair, reason);
    }
}

/// Ends the sends to a peer, or only those of one communicator: at once, unless a link reads the
/// memory. Tells a peer that would not learn otherwise that a message is withdrawn.
void Messages::end_sends(Peer& peer, const Context* only, const Error& reason) {
    PeerMessages& here = peer.messages;
    const auto concerned = [&](const SendOperation& send) {
        return only == nullptr || send.context == only;
    };
    const auto error_of = [&](const SendOperation& send) {
        return reason.within({.rank = public_rank(send.to), .operation = "send"});
    };
    const auto end = [&](SendOperation& send) {
        send.state = SendOperation::State::ended;
        fail(send, error_of(send));
    };
    for (const auto& [id, pair] : peer.pairs) {
        if (only != nullptr && pair->context != only) continue;
        while (SendOperation* const send = pair->waiting.pop_front()) end(*send);
    }
    std::vector<SendOperation*> announced;
    for (const auto& [name, send] : here.announced) {
        if (concerned(*send)) announced.push_back(send);
    }
    for (SendOperation* const send : announced) {
        const MessageName name{send->context->id, send->sequence};
        here.announced.erase(name);
        if (only == nullptr && !send->payload_sent && peer.transfers.usable()) {
            ask(peer, name, nullptr);
        }
        end(*send);
    }
    for (auto& [name, send] : here.asking) {
        if (send != nullptr && concerned(*send)) end(*std::exchange(send, nullptr));
    }
    for (SendOperation* send = here.streaming.first(); send != nullptr;
         send = decltype(here.streaming)::after(*send)) {
        if (!concerned(*send) || std::exchange(send->cancelling, true)) continue;
        send->reason = error_of(*send);
        send->OutStream::cancel();
    }
}

/// Ends a send that end_sends() ended, now that no link reads its memory.
void Messages::end_stopped(SendOperation& send, port::SendOutcome outcome) {
    const std::optional<Error> reason = std::exchange(send.reason, std::nullopt);
    if (outcome == port::SendOutcome::delivered) return finish(send);
    Peer& peer = peer_of(send);
    const bool cancelled =
        outcome == port::SendOutcome::cancelled || outcome == port::SendOutcome::cancelled_late;
    if (cancelled && !send.context->over && peer.transfers.usable()) {
        ask(peer, {send.context->id, send.sequence}, nullptr);
    }
    if (reason) send.error = reason;
    finish(send);
}

/// Drops the messages of a pair that have not arrived completely, and ends their receives.
void Messages::end_arriving(Pair& pair, const Error& reason) {
    Peer& peer = *pair.peer;
    std::vector<InMessage*> messages;
    for (InMessage* message = peer.messages.incomplete.first(); message != nullptr;
         message = decltype(peer.messages.incomplete)::after(*message)) {
        if (message->context == pair.context) messages.push_back(message);
    }
    for (InMessage* const message : messages) {
        if (!message->bulk) peer.transfers.skip(port::Lane::eager, *message);
        withdraw(*message, reason.within({.rank = public_rank(pair.rank), .operation = "receive"}));
    }
}

/// Drops a message of a communicator whose operations all fail.
Result<LanePayload> Messages::drop_header(Peer& peer, Pair& pair, const wire::MessageHeader& header,
                                          bool bulk) {
    const std::uint64_t ahead =
        bulk ? std::min<std::uint64_t>(header.size, limits_.bulk_head) : header.size;
    const Amount charge{.payload = header.awaits_grant ? 0 : ahead, .headers = 1};
    const bool paid = header.from_reserve ? pair.begun_out && pair.reserve_in.came(charge)
                                          : peer.messages.shared_in.came(charge);
    if (!paid) {
        return Error(
            Errc::protocol_violation,
            fmt::format("the peer sent a message of {} bytes without credit for it", header.size));
    }
    pair.next_in = Sequence(pair.next_in.value() + 1);
    give_back(pair, charge, header.from_reserve);
    if (!bulk) return LanePayload{.bytes = header.size};
    const MessageName name{header.context, header.sequence};
    if (peer.messages.taken_back.erase(name) != 0) answer(peer, name, wire::WithdrawStep::done);
    peer.transfers.refuse_early(transfer_name(header.context, header.sequence));
    return LanePayload{};
}

void Messages::strand(Peer& peer) {
    std::vector<InMessage*> messages;
    for (InMessage* message = peer.messages.incomplete.first(); message != nullptr;
         message = decltype(peer.messages.incomplete)::after(*message)) {
        if (message->failure || message->discard) messages.push_back(message);
    }
    const Error dropped(Errc::cancelled, "the message was dropped");
    for (InMessage* const message : messages) {
        withdraw(*message, Error(message->failure.value_or(dropped)));
    }
}

}  // namespace nexar::engine
