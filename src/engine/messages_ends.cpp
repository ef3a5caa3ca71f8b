// How messages end with their communicator, their peer, or the whole node.

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "engine/messages.hpp"

namespace nexar::engine {

void Messages::begin(Pair& pair) {
    for (InMessage* message : std::exchange(pair.early, {})) {
        message->context = pair.context;
        message->source = pair.rank;
        match(*message);
    }
}

void Messages::unblock(Pair& pair) {
    if (std::exchange(pair.blocked, false)) pair.peer->messages.blocked.erase(pair);
    drain(pair);
}

void Messages::end(Context& context) {
    NEXAR_ASSERT(context.matcher.all_posted().empty() && context.probes.empty(),
                 "a communicator must outlive its operations");
    for (Arrived* const arrived : context.matcher.all_arrived()) {
        auto& message = static_cast<InMessage&>(*arrived);
        context.matcher.remove(message);
        if (message.peer != nullptr) give_back(message);
        refuse_payload(message);
    }
}

void Messages::leave(Pair& pair) {
    NEXAR_ASSERT(pair.waiting.empty());
    auto& incomplete = pair.peer->messages.incomplete;
    for (InMessage* message = incomplete.first(); message != nullptr;
         message = std::remove_reference_t<decltype(incomplete)>::after(*message)) {
        if (message->context == pair.context) message->context = nullptr;
    }
}

void Messages::clear(Context& context) {
    for (Arrived* const message : context.matcher.all_arrived()) {
        context.matcher.remove(*message);
        store_.end(static_cast<InMessage&>(*message));
    }
}

void Messages::clear(Pair& pair) {
    for (InMessage* message : pair.early) store_.end(*message);
    pair.early.clear();
}

/// Ends every receive and probe that waits for a message.
void Messages::end_waiting(Context& context, const Error& receive, const Error& probe) {
    for (PostedReceive* const posted : context.matcher.all_posted()) {
        context.matcher.remove(*posted);
        fail(static_cast<ReceiveOperation&>(*posted), receive);
    }
    while (ProbeOperation* first = context.probes.pop_front()) fail(*first, probe);
}

void Messages::close(Context& context, const Error& reason) {
    end_waiting(context, reason, reason);
}

void Messages::close_local(const Error& reason) {
    while (SendOperation* send = locals_.first()) cancel_local(*send, reason);
}

void Messages::abort(Context& context, const Error& reason) {
    end_waiting(context, reason.within({.operation = "receive"}),
                reason.within({.operation = "probe"}));
}

void Messages::abort_local(const Error& reason) {
    aborted_ = reason.within({.operation = "send"});
    close_local(*aborted_);
}

void Messages::abort(Peer& peer, const Error& reason) {
    const Error sent = reason.within({.operation = "send"});
    const auto end_send = [&](SendOperation& send) {
        send.state = SendOperation::State::ended;
        fail(send, sent);
    };
    PeerMessages& here = peer.messages;
    for (const auto& [id, pair] : peer.pairs) {
        while (SendOperation* send = pair->waiting.pop_front()) end_send(*send);
    }
    // A late grant for one of them is allowed.
    for (const auto& [name, send] : here.announced) end_send(*send);
    here.announced.clear();
    for (auto& [name, send] : here.asking) {
        if (send != nullptr) end_send(*std::exchange(send, nullptr));
    }
    for (SendOperation* send = here.streaming.first(); send != nullptr;
         send = decltype(here.streaming)::after(*send)) {
        if (!std::exchange(send->cancelling, true)) send->OutStream::cancel();
    }
    // Matched receives whose message is still arriving.
    for (InMessage* message = here.incomplete.first(); message != nullptr;) {
        InMessage& arriving = *message;
        message = decltype(here.incomplete)::after(arriving);
        if (arriving.receiver != nullptr) {
            let_go(*arriving.receiver, reason.within({.operation = "receive"}));
        }
    }
}

/// Warns once that only this rank itself can end a wait for any source: it may look like a hang.
void Messages::warn_if_alone(Context& context) {
    if (context.alone_told || context.pairs.size() == 1) return;
    const auto left = [](const Pair* pair) { return pair != nullptr && !pair->peer->lost; };
    if (std::ranges::any_of(context.pairs, left)) return;
    context.alone_told = true;
    NEXAR_LOG_WARNING(
        "rank {} is waiting for a message from any source, and every other rank has left: "
        "only this rank itself can still send one",
        context.me.value());
}

void Messages::end_receives_of(Context& context, const Pair& pair, const Error& reason) {
    // After a peer has left in good order, another peer may still send the message; after the last
    // peer has left, this rank itself may.
    const bool all = reason.code() != Errc::link_closed && reason.code() != Errc::peer_unreachable;
    bool any_source_waits = false;
    const auto concerned = [&](const Pattern& pattern) {
        return pattern.source ? *pattern.source == pair.rank : all;
    };
    for (PostedReceive* const posted : context.matcher.all_posted()) {
        any_source_waits = any_source_waits || !posted->pattern.source;
        if (!concerned(posted->pattern)) continue;
        context.matcher.remove(*posted);
        fail(static_cast<ReceiveOperation&>(*posted),
             reason.within({.rank = public_rank(pair.rank), .operation = "receive"}));
    }
    for (ProbeOperation* at = context.probes.first(); at != nullptr;) {
        ProbeOperation& probe = *at;
        at = decltype(context.probes)::after(probe);
        any_source_waits = any_source_waits || !probe.pattern.source;
        if (!concerned(probe.pattern)) continue;
        context.probes.erase(probe);
        fail(probe, reason.within({.rank = public_rank(pair.rank), .operation = "probe"}));
    }
    if (any_source_waits && !all) warn_if_alone(context);
}

void Messages::down(Peer& peer, const Error& reason) {
    PeerMessages& here = peer.messages;
    NEXAR_ASSERT(here.streaming.empty());
    here.announced.merge(here.asking);
    for (const auto& [name, send] : here.announced) {
        if (send == nullptr) continue;  // it ended without the answer
        send->state = SendOperation::State::ended;
        fail(*send, reason.within({.rank = public_rank(send->to), .operation = "send"}));
    }
    here.announced.clear();
    here.asking.clear();
    here.taken_back.clear();
    here.given_up.clear();
    while (InMessage* message = here.incomplete.first()) {
        withdraw(*message,
                 reason.within({.rank = public_rank(message->source), .operation = "receive"}));
    }
    while (Pair* blocked = here.blocked.pop_front()) blocked->blocked = false;
    for (const auto& [id, pair] : peer.pairs) {
        while (SendOperation* send = pair->waiting.pop_front()) {
            send->state = SendOperation::State::ended;
            fail(*send, reason.within({.rank = public_rank(pair->rank), .operation = "send"}));
        }
        if (pair->context != nullptr) end_receives_of(*pair->context, *pair, reason);
    }
}

}  // namespace nexar::engine
