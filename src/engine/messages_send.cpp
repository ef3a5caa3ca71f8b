#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "engine/messages.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

namespace {

/// How a message is announced.
struct Announcement {
    bool eager = false;  // its payload follows its header on the lane
    bool from_reserve = false;
    bool awaits_grant = false;  // its payload waits for the match
};

/// Returns false if the lane is full.
bool write_header(Pair& pair, const SendOperation& send, const Announcement& how) {
    const wire::MessageHeader header{.context = pair.context_id,
                                     .sequence = pair.next_out,
                                     .tag = send.tag,
                                     .size = send.bytes,
                                     .synchronous = send.synchronous,
                                     .from_reserve = how.from_reserve};
    PeerTransfers& transfers = pair.peer->transfers;
    if (how.eager) {
        return transfers.write_message(port::Lane::eager, wire::EagerHeader{header}, send.content);
    }
    wire::BulkHeader bulk{header};
    bulk.awaits_grant = how.awaits_grant;
    return transfers.write_message(port::Lane::eager, bulk);
}

Error gone(const Pair& pair, const Error& reason) {
    if (remedy(reason.code()) == Remedy::recover) {
        return reason.within({.rank = public_rank(pair.rank), .operation = "send"});
    }
    return Error(reason.code(), fmt::format("the link to the peer is down: {}", reason.cause()),
                 {.rank = public_rank(pair.rank), .host = reason.host()});
}

void copy_all(std::span<const port::ConstBytes> from, port::Bytes to) {
    for (const port::ConstBytes region : from) {
        if (region.empty()) continue;  // its data() may be nullptr
        std::memcpy(to.data(), region.data(), region.size());
        to = to.subspan(region.size());
    }
}

}  // namespace

void Messages::start(Context& context, SendOperation& send) {
    send.messages = this;
    send.state = SendOperation::State::idle;
    send.cancelling = false;
    send.payload_sent = false;
    send.reason.reset();
    send.bytes = 0;
    for (const port::ConstBytes region : send.content) send.bytes += region.size();
    if (send.to == context.me) {
        send_to_self(context, send);
        return;
    }
    NEXAR_ASSERT(send.to.value() < context.pairs.size());
    Pair& pair = *context.pairs[send.to.value()];
    if (pair.peer->lost) {
        send.state = SendOperation::State::ended;
        fail(send, gone(pair, *pair.peer->lost));
        return;
    }
    send.state = SendOperation::State::waiting;
    pair.waiting.push_back(send);
    services_->want(*pair.peer);
    if (!pair.blocked) drain(pair);
    if (send.state == SendOperation::State::waiting) {
        services_->recording().waits(send, wait_reason(pair.peer->transfers));
    } else if (send.state == SendOperation::State::announced) {
        services_->recording().waits(send, WaitReason::match);
    }
}

std::size_t Messages::eager_limit(const Peer& peer) const noexcept {
    return std::max(limits_.eager_limit, peer.transfers.eager_bytes());
}

bool Messages::send_at_once(Context& context, Rank to, Tag tag, port::ConstBytes content) {
    if (to == context.me) return false;
    Pair& pair = *context.pairs[to.value()];
    Peer& peer = *pair.peer;
    if (content.size() > eager_limit(peer)) return false;
    PeerTransfers& transfers = peer.transfers;
    const bool ready = pair.begun_out && !pair.blocked && pair.waiting.empty() &&
                       transfers.usable() && !transfers.full(port::Lane::eager) && !peer.lost;
    const Amount charge{.payload = content.size(), .headers = 1};
    if (!ready || !peer.messages.shared_out.take(charge)) return false;
    const wire::MessageHeader header{
        .context = pair.context_id, .sequence = pair.next_out, .tag = tag, .size = content.size()};
    if (!transfers.write_message(port::Lane::eager, wire::EagerHeader{header}, {&content, 1})) {
        NEXAR_ASSERT(peer.messages.shared_out.give_back(charge.payload, charge.headers));
        return false;
    }
    pair.next_out = Sequence(pair.next_out.value() + 1);
    return true;
}

void Messages::send_to_self(Context& context, SendOperation& send) {
    InMessage& message = store_.make();
    message.messages = this;
    message.context = &context;
    message.source = context.me;
    message.tag = send.tag;
    message.bytes = send.bytes;
    send.state = SendOperation::State::local;
    send.local_message = &message;
    message.local = &send;
    locals_.push_back(send);
    auto* const receive =
        static_cast<ReceiveOperation*>(context.matcher.take_posted(message.source, message.tag));
    // A matched probe only takes the message, whose send need not wait until it is received.
    if (receive != nullptr && !receive->only_take) return deliver(message, *receive);
    const bool copies = !send.synchronous && send.bytes <= limits_.eager_limit &&
                        self_bytes_ + send.bytes <= limits_.shared.payload;
    if (copies && store_.reserve(message, static_cast<std::size_t>(send.bytes))) {
        copy_all(send.content, MessageStore::storage(message));
        message.complete = true;
        self_bytes_ += send.bytes;
        end_local(message);
        finish(send);
    }
    if (receive != nullptr) return deliver(message, *receive);
    match(message);
}

/// Ends the send of a message to this rank, which no longer needs the memory of the send.
void Messages::end_local(InMessage& message) {
    SendOperation& send = *std::exchange(message.local, nullptr);
    locals_.erase(send);
    send.local_message = nullptr;
    send.state = SendOperation::State::ended;
}

void Messages::cancel_local(SendOperation& send, const Error& reason) {
    InMessage& message = *send.local_message;
    end_local(message);
    if (message.waiting) {
        end(message);
    } else {
        message.failure = reason;  // for the caller that took it out of matching
    }
    fail(send, reason);
}

/// True when the link is usable and the communicator has been introduced to the peer.
bool Messages::introduced(Pair& pair) {
    return pair.peer->transfers.usable() && (pair.begun_out || services_->introduce(pair));
}

void Messages::drain(Pair& pair) {
    const auto block = [&] {
        if (!pair.blocked) pair.peer->messages.blocked.push_back(pair);
        pair.blocked = true;
    };
    if (pair.begun_in && pair.context != nullptr && !introduced(pair)) return block();
    while (SendOperation* send = pair.waiting.first()) {
        if (!announce(pair, *send)) return block();
    }
    if (pair.ended && !services_->say_end(pair)) block();
}

void Messages::drain(Peer& peer) {
    if (!peer.transfers.up()) return;
    // Each pair gets one try; if it stays blocked it returns to the end of the list.
    IntrusiveList<Pair, &Pair::blocked_hook> waiting;
    std::swap(waiting, peer.messages.blocked);
    while (Pair* pair = waiting.pop_front()) {
        pair->blocked = false;
        drain(*pair);
    }
}

/// Announces the first waiting message as far as credit allows: with its payload, or without it.
/// Returns false if it cannot be announced.
bool Messages::announce(Pair& pair, SendOperation& send) {
    Peer& peer = *pair.peer;
    if (peer.transfers.full(port::Lane::eager) || !introduced(pair)) return false;
    const bool small = send.bytes <= eager_limit(peer);
    const Amount head{.payload = 0, .headers = 1};
    const Amount full{
        .payload = small ? send.bytes : std::min<std::uint64_t>(send.bytes, limits_.bulk_head),
        .headers = 1};
    // A larger message whose send ends only with the match holds its payload back.
    const bool may_travel = small || !send.synchronous;
    bool reserve = false;
    bool payload = may_travel && peer.messages.shared_out.take(full);
    // The reserve opens when the peer has introduced the communicator.
    const auto take_reserve = [&](const Amount& amount) {
        return pair.begun_in && pair.reserve_out.take(amount);
    };
    if (!payload && may_travel) payload = reserve = take_reserve(full);
    if (!payload && send.bytes == 0) return false;
    if (!payload && !peer.messages.shared_out.take(head)) {
        reserve = take_reserve(head);
        if (!reserve) return false;
    }
    const bool eager = small && payload;
    if (!write_header(pair, send,
                      {.eager = eager, .from_reserve = reserve, .awaits_grant = !payload})) {
        const Amount& taken = payload ? full : head;
        CreditOut& pool = reserve ? pair.reserve_out : peer.messages.shared_out;
        NEXAR_ASSERT(pool.give_back(taken.payload, taken.headers));
        return false;
    }
    pair.waiting.erase(send);
    send.sequence = pair.next_out;
    pair.next_out = Sequence(pair.next_out.value() + 1);
    if (eager && !send.synchronous) {
        send.state = SendOperation::State::ended;
        finish(send);
    } else if (eager || !payload) {
        send.payload_sent = eager;
        send.state = SendOperation::State::announced;
        peer.messages.announced.emplace(MessageName{pair.context_id, send.sequence}, &send);
    } else {
        begin_stream(peer, send);
    }
    return true;
}

void Messages::begin_stream(Peer& peer, SendOperation& send) {
    send.state = SendOperation::State::streaming;
    peer.messages.streaming.push_back(send);
    peer.transfers.send(send, transfer_name(send.context->id, send.sequence), send.priority);
}

Result<void> Messages::on_grant(Peer& peer, const wire::Grant& grant) {
    const auto found = peer.messages.announced.find({grant.context, grant.sequence});
    if (found == peer.messages.announced.end()) {
        const auto pair = peer.pairs.find(grant.context);
        // Its send was cancelled, or the communicator ended, while the grant was in flight.
        if (pair == peer.pairs.end() || grant.sequence < pair->second->next_out) return {};
        return Error(Errc::protocol_violation,
                     "the peer granted a message that was never announced");
    }
    SendOperation& send = *found->second;
    peer.messages.announced.erase(found);
    if (send.payload_sent) {
        send.state = SendOperation::State::ended;
        finish(send);
        return {};
    }
    begin_stream(peer, send);
    return {};
}

void SendOperation::released(port::SendOutcome outcome) {
    messages->released(*this, outcome);
}

void Messages::released(SendOperation& send, port::SendOutcome outcome) {
    Peer& peer = peer_of(send);
    peer.messages.streaming.erase(send);
    send.state = SendOperation::State::ended;
    if (aborted_) return fail(send, *aborted_);
    if (send.reason) return end_stopped(send, outcome);
    switch (outcome) {
        case port::SendOutcome::delivered:
        case port::SendOutcome::refused:  // consumed by a receive that was too small
            finish(send);
            return;
        case port::SendOutcome::cancelled:
            take_back(peer, send);
            return;
        case port::SendOutcome::cancelled_late:
            send.state = SendOperation::State::asking;
            ask(peer, {send.context->id, send.sequence}, &send);
            give_up_soon(send);
            return;
        case port::SendOutcome::link_lost:
            if (limits_.awaits_verdicts) {
                // The verdict on the peer ends it.
                send.payload_sent = true;
                send.state = SendOperation::State::announced;
                peer.messages.announced.emplace(MessageName{send.context->id, send.sequence},
                                                &send);
                if (send.cancelling) give_up_soon(send);
                return;
            }
            fail(send,
                 Error(Errc::link_closed, "the link went down before the whole message had arrived",
                       {.rank = public_rank(send.to),
                        .operation = "send",
                        .sequence = send.sequence}));
            return;
    }
}

Result<void> Messages::on_credit(Peer& peer, Pair* pair, const wire::Credit& credit) {
    CreditOut& pool = pair == nullptr ? peer.messages.shared_out : pair->reserve_out;
    if (!pool.give_back(credit.payload_bytes, credit.headers)) {
        return Error(Errc::protocol_violation,
                     "the peer returned more credit than it had received");
    }
    drain(peer);
    return {};
}

}  // namespace nexar::engine
