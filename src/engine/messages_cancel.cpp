// How cancelled operations end, even if a peer that knows of them is silent.

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "engine/messages.hpp"

namespace nexar::engine {

void Messages::advance(TimePoint now) {
    now_ = std::max(now_, now);
    while (!giving_up_.empty() && giving_up_.begin()->first <= now_) {
        Operation& operation = *giving_up_.begin()->second;
        if (operation.kind() == Operation::Kind::send) {
            give_up(static_cast<SendOperation&>(operation));
        } else {
            give_up(static_cast<ReceiveOperation&>(operation));
        }
    }
}

std::optional<TimePoint> Messages::next_deadline() const noexcept {
    return giving_up_.empty() ? std::nullopt : std::optional(giving_up_.begin()->first);
}

void Messages::finish(Operation& operation) {
    if (operation.give_up_at != TimePoint::max()) {
        giving_up_.erase({operation.give_up_at, &operation});
        operation.give_up_at = TimePoint::max();
    }
    services_->finish(operation);
}

void Messages::fail(Operation& operation, Error error) {
    operation.error = std::move(error);
    finish(operation);
}

void Messages::cancel(SendOperation& send) {
    if (!send.active || send.cancelling) return;
    switch (send.state) {
        case SendOperation::State::waiting: {
            send.context->pairs[send.to.value()]->waiting.erase(send);
            send.state = SendOperation::State::ended;
            fail(send,
                 Error(Errc::cancelled, "the send was cancelled", {.rank = public_rank(send.to)}));
            return;
        }
        case SendOperation::State::announced: {
            Peer& peer = peer_of(send);
            send.cancelling = true;
            // An eager message has been sent already: its send succeeds if the peer reports its
            // match in time.
            if (send.payload_sent) return give_up_soon(send);
            peer.messages.announced.erase({send.context->id, send.sequence});
            take_back(peer, send);
            return;
        }
        case SendOperation::State::streaming:
            send.cancelling = true;
            send.OutStream::cancel();
            return;
        case SendOperation::State::local:
            cancel_local(send, Error(Errc::cancelled, "the send was cancelled",
                                     {.rank = public_rank(send.to)}));
            return;
        case SendOperation::State::asking:
        case SendOperation::State::idle:
        case SendOperation::State::ended:
            return;
    }
}

void Messages::cancel(ReceiveOperation& receive) {
    if (!receive.active) return;
    if (!receive.waiting) return give_up_soon(receive);
    receive.context->matcher.remove(receive);
    fail(receive, Error(Errc::cancelled, "the receive was cancelled"));
}

void Messages::cancel(ProbeOperation& probe) {
    if (!probe.active) return;
    probe.context->probes.erase(probe);
    fail(probe, Error(Errc::cancelled, "the probe was cancelled"));
}

/// A peer knows of the operation, which may still end normally, but only within the patience.
void Messages::give_up_soon(Operation& operation) {
    if (operation.give_up_at != TimePoint::max()) return;
    operation.give_up_at = now_ + limits_.cancel_patience;
    giving_up_.emplace(operation.give_up_at, &operation);
}

/// Ends a send whose message was sent completely and whose outcome the peer does not report.
void Messages::give_up(SendOperation& send) {
    Peer& peer = peer_of(send);
    const MessageName name{send.context->id, send.sequence};
    if (send.state == SendOperation::State::asking) {
        peer.messages.asking.at(name) = nullptr;
    } else {
        NEXAR_ASSERT(send.state == SendOperation::State::announced && send.payload_sent);
        peer.messages.announced.erase(name);
    }
    send.state = SendOperation::State::ended;
    fail(send,
         Error(Errc::outcome_unknown,
               "the send was cancelled after the whole message had been sent, and the peer "
               "did not report the outcome; the message may or may not be received",
               {.rank = public_rank(send.to), .operation = "send", .sequence = send.sequence}));
}

/// Ends a receive whose message did not arrive completely in time. The message is lost; its send
/// ends as if it had been received.
void Messages::give_up(ReceiveOperation& receive) {
    const InMessage& message = *receive.matched;
    let_go(receive,
           Error(Errc::cancelled,
                 "the receive was cancelled while its message was arriving; the message is lost",
                 {.rank = public_rank(message.source),
                  .operation = "receive",
                  .sequence = message.sequence}));
}

/// Ends a receive whose message is arriving, and drops the message.
void Messages::let_go(ReceiveOperation& receive, Error reason) {
    InMessage& message = *receive.matched;
    NEXAR_ASSERT(message.receiver == &receive);
    message.receiver = nullptr;
    message.discard = true;
    if (message.stream != nullptr) message.stream->refuse();
    fail(receive, std::move(reason));
}

/// Ends the send of a message that the peer does not have completely and never will, and tells the
/// peer to forget it.
void Messages::take_back(Peer& peer, SendOperation& send) {
    send.state = SendOperation::State::ended;
    ask(peer, {send.context->id, send.sequence}, nullptr);
    fail(send, Error(Errc::cancelled, "the send was cancelled", {.rank = public_rank(send.to)}));
}

/// Tells the peer that this side withdraws a message, and asks for the outcome.
void Messages::ask(Peer& peer, const MessageName& name, SendOperation* send) {
    peer.messages.asking.emplace(name, send);
    peer.transfers.say_message(
        port::Lane::control,
        wire::Withdraw{
            .context = name.context, .sequence = name.sequence, .step = wire::WithdrawStep::asked});
    if (peer.messages.asking.size() > limits_.max_asking) {
        peer.transfers.cut_off(
            Error(Errc::limit_exceeded, "the peer does not report the outcome of messages"));
    }
}

Result<void> Messages::on_withdraw_answer(Peer& peer, const wire::Withdraw& answer) {
    const auto found = peer.messages.asking.find({answer.context, answer.sequence});
    if (found == peer.messages.asking.end()) {
        return Error(Errc::protocol_violation,
                     "the peer reported the outcome of a message without being asked, or reported "
                     "it twice");
    }
    SendOperation* const send = found->second;
    peer.messages.asking.erase(found);
    if (send == nullptr) return {};  // it ended without the answer
    send->state = SendOperation::State::ended;
    if (answer.step == wire::WithdrawStep::received) {
        finish(*send);
    } else {
        fail(*send,
             Error(Errc::cancelled, "the send was cancelled", {.rank = public_rank(send->to)}));
    }
    return {};
}

}  // namespace nexar::engine
