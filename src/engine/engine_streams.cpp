#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "engine/engine.hpp"
#include "wire/preamble.hpp"

namespace nexar::engine {

void Engine::on_opened(Peer& peer, port::StreamId id) {
    InBulk::Owner& owner = *this;
    auto owned = std::make_unique<InBulk>(owner, peer, id);
    InBulk& stream = *owned;
    peer.streams_in.emplace(id.value(), std::move(owned));
    if (peer.violation) {
        refuse(stream);
    } else {
        peer.link->receive(id, stream);
    }
}

void Engine::named(InBulk& stream, port::ConstBytes preamble) {
    Peer& peer = stream.peer();
    const auto read = wire::decode_preamble(preamble);
    if (read && read->lane == wire::Lane::call) return calls_.named(stream, *read);
    if (read && read->lane == wire::Lane::collective) return collectives_.named(stream, *read);
    if (!read || read->lane != wire::Lane::bulk) {
        violated(peer, Error(Errc::protocol_violation, "a payload stream began as none"));
        refuse(stream);
        return;
    }
    const MessageName name{read->context, read->sequence};
    if (const auto found = peer.bulk_in.find(name); found != peer.bulk_in.end()) {
        if (found->second->stream != nullptr) {
            violated(peer, Error(Errc::protocol_violation, "two streams carry one message"));
            refuse(stream);
        } else {
            attach(*found->second, stream);
        }
        return;
    }
    const auto pair = peer.pairs.find(name.context);
    if (pair != peer.pairs.end() && name.sequence < pair->second->next_in) {
        refuse(stream);  // of a message that was given up
        return;
    }
    stream.early = peer.early_streams.emplace(name, &stream).second;
    if (stream.early) return;
    violated(peer, Error(Errc::protocol_violation, "two streams carry one message"));
    refuse(stream);
}

void Engine::overran(InBulk& stream) {
    violated(stream.peer(),
             Error(Errc::protocol_violation, "a payload is longer than its header said"));
    refuse(stream);
}

namespace {

void forget(Peer& peer, InBulk& stream) {
    if (stream.early) {
        std::erase_if(peer.early_streams,
                      [&](const auto& entry) { return entry.second == &stream; });
    }
    peer.streams_in.erase(stream.id().value());
}

}  // namespace

void Engine::on_finished(Peer& peer, const port::Finished& finished) {
    if (calls_.finished(peer, finished) || collectives_.finished(peer, finished)) return;
    const auto found = peer.streams_in.find(finished.stream.value());
    NEXAR_ASSERT(found != peer.streams_in.end());
    InBulk& stream = *found->second;
    InMessage* message = std::exchange(stream.message, nullptr);
    const bool refused = stream.refused;
    forget(peer, stream);
    if (message == nullptr) {
        if (!refused) {
            violated(peer, Error(Errc::protocol_violation, "a payload stream ended without one"));
        }
        return;
    }
    message->stream = nullptr;
    if (message->discard) {
        unlist(*message);
        conclude(*message);
    } else if (message->failure) {
        // Taken back, and it came whole before the link knew that it is refused.
        withdraw(*message, Error(*message->failure));
    } else if (finished.bytes != wire::kBulkPreambleBytes + message->bytes) {
        violated(peer, Error(Errc::protocol_violation,
                             fmt::format("a payload of {} bytes ended after {}", message->bytes,
                                         finished.bytes - wire::kBulkPreambleBytes)));
    } else {
        unlist(*message);
        message->complete = true;
        if (message->receiver != nullptr) conclude(*message);
    }
}

void Engine::on_aborted(Peer& peer, port::StreamId id) {
    if (calls_.aborted(peer, id) || collectives_.aborted(peer, id)) return;
    const auto found = peer.streams_in.find(id.value());
    NEXAR_ASSERT(found != peer.streams_in.end());
    InMessage* message = std::exchange(found->second->message, nullptr);
    forget(peer, *found->second);
    if (message == nullptr) return;
    message->stream = nullptr;
    if (message->discard) {
        unlist(*message);
        conclude(*message);
    } else if (message->failure || !peer.violation) {
        if (!message->failure && peer.given_up.size() < options_.shared.headers) {
            peer.given_up.insert({message->context_id, message->sequence});
        }
        const Error cancelled(
            Errc::cancelled, "the sender cancelled the message",
            {.rank = public_rank(message->source), .sequence = message->sequence});
        withdraw(*message, message->failure.value_or(cancelled));
    }
}

/// It is not in the tables of its peer any more: nothing of it will come.
void Engine::unlist(InMessage& message) {
    Peer& peer = *message.peer;
    peer.incomplete.erase(message);
    if (!message.bulk) return;
    peer.bulk_in.erase({message.context_id, message.sequence});
}

/// Ends a message whose payload came, failed or is not wanted, and its receive.
void Engine::conclude(InMessage& message) {
    give_back(message);
    if (ReceiveOperation* receive = message.receiver; receive != nullptr) {
        if (message.failure) receive->error = message.failure;
        finish(*receive);
    }
    end(message);
}

/// The payload of a message will not come.
void Engine::withdraw(InMessage& message, const Error& reason) {
    message.failure = reason;
    if (message.stream != nullptr) {
        refuse(*message.stream);  // its Aborted, which needs no peer, ends the message
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
    // Else it was taken out of matching, and whoever has it will be told.
}

Result<void> Engine::on_withdraw(Peer& peer, const wire::Withdraw& withdraw) {
    if (withdraw.step != wire::WithdrawStep::asked) {
        return on_withdraw_answer(peer, withdraw);
    }
    const MessageName name{withdraw.context, withdraw.sequence};
    const auto pair = peer.pairs.find(name.context);
    const bool header_came = pair != peer.pairs.end() && name.sequence < pair->second->next_in;
    if (!header_came) {
        if (peer.taken_back.size() >= options_.shared.headers) {
            return Error(Errc::limit_exceeded, "it takes back messages that it never sent");
        }
        if (peer.taken_back.insert(name).second) return {};
        return Error(Errc::protocol_violation, "it took one message back twice");
    }
    const auto found = peer.bulk_in.find(name);
    if (found == peer.bulk_in.end()) {
        const bool given_up = peer.given_up.erase(name) != 0;
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

void Engine::answer(Peer& peer, const MessageName& name, wire::WithdrawStep step) {
    send_control(peer,
                 wire::Withdraw{.context = name.context, .sequence = name.sequence, .step = step});
}

}  // namespace nexar::engine
