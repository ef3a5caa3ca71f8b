// Payloads of messages as they arrive, and messages that their sender withdraws.

#include <algorithm>
#include <utility>

#include "engine/messages.hpp"

namespace nexar::engine {

Awaited Messages::look_up(Peer& peer, const TransferName& name) {
    const Sequence sequence(name.number);
    const auto& bulk_in = peer.messages.bulk_in;
    if (const auto found = bulk_in.find({name.context, sequence}); found != bulk_in.end()) {
        return {.state = Awaited::State::known, .receiver = found->second};
    }
    const auto pair = peer.pairs.find(name.context);
    const bool over =
        pair != peer.pairs.end() && (sequence < pair->second->next_in || is_over(*pair->second));
    return {.state = over ? Awaited::State::over : Awaited::State::not_yet};
}

void InMessage::attached() {
    messages->attached(*this);
}

void InMessage::finished(std::uint64_t came) {
    messages->finished(*this, came);
}

void InMessage::aborted() {
    messages->aborted(*this);
}

void Messages::attached(InMessage& message) {
    if (message.receiver != nullptr && !message.discard) return message.stream->open();
    if (message.discard) {
        message.stream->refuse();
    } else {
        store_payload(message);
    }
    message.stream->wake();
}

/// Called at the end of a payload, behind its header or on a stream.
void Messages::finished(InMessage& message, std::uint64_t came) {
    if (message.discard) {
        unlist(message);
        conclude(message);
    } else if (message.failure) {
        // It was withdrawn, but all of it arrived before the link could refuse it.
        withdraw(message, Error(*message.failure));
    } else if (came != message.bytes) {
        message.peer->transfers.check_whole(message.bytes, came);
    } else {
        unlist(message);
        message.complete = true;
        if (message.receiver == nullptr) return;
        finish(*message.receiver);
        end(message);
    }
}

void Messages::aborted(InMessage& message) {
    Peer& peer = *message.peer;
    if (message.discard) {
        unlist(message);
        conclude(message);
    } else if (limits_.awaits_verdicts && !message.failure) {
        // A sender that cancels a message also withdraws it. One that says nothing ended it because
        // of a failure of which this node will learn.
    } else if (message.failure || !peer.transfers.violation()) {
        auto& given_up = peer.messages.given_up;
        if (!message.failure && given_up.size() < limits_.shared.headers) {
            given_up.insert({message.context_id, message.sequence});
        }
        const Error cancelled(Errc::cancelled, "the sender cancelled the message",
                              {.rank = public_rank(message.source), .sequence = message.sequence});
        withdraw(message, message.failure.value_or(cancelled));
    }
}

/// Removes a message from the tables of its peer: nothing more of it will arrive.
void Messages::unlist(InMessage& message) {
    Peer& peer = *message.peer;
    peer.messages.incomplete.erase(message);
    if (!message.bulk) return;
    peer.messages.bulk_in.erase({message.context_id, message.sequence});
}

/// Ends a message whose payload arrived, failed or is not needed, and its receive.
void Messages::conclude(InMessage& message) {
    give_back(message);
    if (ReceiveOperation* receive = message.receiver; receive != nullptr) {
        if (message.failure) receive->error = message.failure;
        finish(*receive);
    }
    end(message);
}

/// Called when the payload of a message will not arrive.
void Messages::withdraw(InMessage& message, const Error& reason) {
    message.failure = reason;
    if (message.stream != nullptr) {
        message.stream->refuse();  // aborted() ends the message, even if the peer is silent
        return;
    }
    unlist(message);
    if (message.context == nullptr && !message.discard) {
        std::erase(message.peer->pairs.at(message.context_id)->early, &message);
        give_back(message);
        store_.end(message);
    } else if (message.waiting || message.receiver != nullptr || message.discard) {
        conclude(message);
    }
    // Otherwise a caller took it out of matching and will see the failure.
}

Result<void> Messages::on_withdraw(Peer& peer, const wire::Withdraw& withdraw) {
    if (withdraw.step != wire::WithdrawStep::asked) {
        return on_withdraw_answer(peer, withdraw);
    }
    const MessageName name{withdraw.context, withdraw.sequence};
    const auto pair = peer.pairs.find(name.context);
    const bool header_came = pair != peer.pairs.end() && name.sequence < pair->second->next_in;
    if (!header_came) {
        if (peer.messages.taken_back.size() >= limits_.shared.headers) {
            return Error(Errc::limit_exceeded, "the peer withdraws messages that it never sent");
        }
        if (peer.messages.taken_back.insert(name).second) return {};
        return Error(Errc::protocol_violation, "the peer withdrew one message twice");
    }
    const auto found = peer.messages.bulk_in.find(name);
    if (found == peer.messages.bulk_in.end()) {
        const bool given_up = peer.messages.given_up.erase(name) != 0;
        answer(peer, name, given_up ? wire::WithdrawStep::done : wire::WithdrawStep::received);
        return {};
    }
    answer(peer, name, wire::WithdrawStep::done);
    InMessage& message = *found->second;
    this->withdraw(message,
                   Error(Errc::cancelled, "the sender cancelled the message",
                         {.rank = public_rank(message.source), .sequence = message.sequence}));
    return {};
}

void Messages::answer(Peer& peer, const MessageName& name, wire::WithdrawStep step) {
    peer.transfers.say_message(
        port::Lane::control,
        wire::Withdraw{.context = name.context, .sequence = name.sequence, .step = step});
}

}  // namespace nexar::engine
