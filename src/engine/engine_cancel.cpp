// How operations end that were cancelled, also when a peer that knows of them is silent.

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "engine/engine.hpp"

namespace nexar::engine {

void Engine::advance(TimePoint now) {
    now_ = std::max(now_, now);
    calls_.advance(now);
    collectives_.advance(now);
    if (!giving_up_.empty()) give_up_late(now_);
    offer_rests();
}

std::optional<TimePoint> Engine::next_deadline() const noexcept {
    const std::array all{
        calls_.next_deadline(), collectives_.next_deadline(),
        giving_up_.empty() ? std::nullopt : std::optional(giving_up_.begin()->first)};
    std::optional<TimePoint> first;
    for (const auto& due : all) {
        if (due && (!first || *due < *first)) first = due;
    }
    return first;
}

void Engine::cancel(SendOperation& send) {
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
            Peer& peer = *send.context->pairs[send.to.value()]->peer;
            send.cancelling = true;
            // An eager one is out already: it has ended if its match is told in time.
            if (send.payload_sent) return give_up_soon(send);
            peer.announced.erase({send.context->id, send.sequence});
            take_back(peer, send);
            return;
        }
        case SendOperation::State::streaming: {
            Peer& peer = *send.context->pairs[send.to.value()]->peer;
            send.cancelling = true;
            if (peer.link != nullptr) peer.link->cancel(send.stream);
            return;
        }
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

void Engine::cancel(ReceiveOperation& receive) {
    if (!receive.active) return;
    if (!receive.waiting) return give_up_soon(receive);
    receive.context->matcher.remove(receive);
    fail(receive, Error(Errc::cancelled, "the receive was cancelled"));
}

void Engine::cancel(ProbeOperation& probe) {
    if (!probe.active) return;
    probe.context->probes.erase(probe);
    fail(probe, Error(Errc::cancelled, "the probe was cancelled"));
}

/// A peer knows of the operation: it may still end as it would have, but not late.
void Engine::give_up_soon(Operation& operation) {
    if (operation.give_up_at != TimePoint::max()) return;
    operation.give_up_at = now_ + options_.cancel_patience;
    giving_up_.emplace(operation.give_up_at, &operation);
}

void Engine::give_up_late(TimePoint now) {
    while (!giving_up_.empty() && giving_up_.begin()->first <= now) {
        Operation& operation = *giving_up_.begin()->second;
        if (operation.kind() == Operation::Kind::send) {
            give_up(static_cast<SendOperation&>(operation));
        } else {
            give_up(static_cast<ReceiveOperation&>(operation));
        }
    }
}

/// All of the message was sent, and the peer does not say what became of it.
void Engine::give_up(SendOperation& send) {
    Peer& peer = *send.context->pairs[send.to.value()]->peer;
    const MessageName name{send.context->id, send.sequence};
    if (send.state == SendOperation::State::asking) {
        peer.asking.at(name) = nullptr;
    } else {
        NEXAR_ASSERT(send.state == SendOperation::State::announced && send.payload_sent);
        peer.announced.erase(name);
    }
    send.state = SendOperation::State::ended;
    fail(send,
         Error(Errc::outcome_unknown,
               "the send was cancelled when all of the message had been sent, and the peer "
               "did not say what became of it; it may be received or not",
               {.rank = public_rank(send.to), .operation = "send", .sequence = send.sequence}));
}

/// The rest of its message does not come in time. The message is lost; its sender's side ends as if
/// it had been received.
void Engine::give_up(ReceiveOperation& receive) {
    const InMessage& message = *receive.matched;
    let_go(receive,
           Error(Errc::cancelled,
                 "the receive was cancelled while its message was arriving; the message is lost",
                 {.rank = public_rank(message.source),
                  .operation = "receive",
                  .sequence = message.sequence}));
}

/// Ends a receive whose message is arriving; nobody gets the message.
void Engine::let_go(ReceiveOperation& receive, Error reason) {
    InMessage& message = *receive.matched;
    NEXAR_ASSERT(message.receiver == &receive);
    message.receiver = nullptr;
    message.discard = true;
    if (message.stream != nullptr) refuse(*message.stream);
    fail(receive, std::move(reason));
}

/// Ends a send of which the peer does not have all and never will; the peer is told to forget it.
void Engine::take_back(Peer& peer, SendOperation& send) {
    send.state = SendOperation::State::ended;
    ask(peer, {send.context->id, send.sequence}, nullptr);
    fail(send, Error(Errc::cancelled, "the send was cancelled", {.rank = public_rank(send.to)}));
}

/// Tells the peer that a message was given up, and asks what became of it.
void Engine::ask(Peer& peer, const MessageName& name, SendOperation* send) {
    peer.asking.emplace(name, send);
    send_control(peer, wire::Withdraw{.context = name.context,
                                      .sequence = name.sequence,
                                      .step = wire::WithdrawStep::asked});
    if (peer.asking.size() > options_.max_control_backlog) {
        violated(peer, Error(Errc::limit_exceeded, "it does not say what became of messages"));
    }
}

Result<void> Engine::on_withdraw_answer(Peer& peer, const wire::Withdraw& answer) {
    const auto found = peer.asking.find({answer.context, answer.sequence});
    if (found == peer.asking.end()) {
        return Error(Errc::protocol_violation,
                     "it answered what it was not asked, or twice: what became of a message");
    }
    SendOperation* const send = found->second;
    peer.asking.erase(found);
    if (send == nullptr) return {};  // ended without the answer
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
