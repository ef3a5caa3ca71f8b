#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "engine/engine.hpp"
#include "engine/lane_write.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

namespace {

wire::MessageHeader header_of(const Pair& pair, const SendOperation& send, bool from_reserve) {
    return {.context = pair.context_id,
            .sequence = pair.next_out,
            .tag = send.tag,
            .size = send.bytes,
            .synchronous = send.synchronous,
            .from_reserve = from_reserve};
}

Error gone(const Pair& pair, const Error& reason) {
    return Error(reason.code(), fmt::format("the link to the peer is down: {}", reason.cause()),
                 {.rank = public_rank(pair.rank), .host = reason.host()});
}

void copy_all(std::span<const port::ConstBytes> from, port::Bytes to) {
    for (const port::ConstBytes region : from) {
        if (region.empty()) continue;  // may be nowhere
        std::memcpy(to.data(), region.data(), region.size());
        to = to.subspan(region.size());
    }
}

}  // namespace

void Engine::start(Context& context, SendOperation& send) {
    send.state = SendOperation::State::idle;
    send.cancelling = false;
    send.payload_sent = false;
    send.bytes = 0;
    for (const port::ConstBytes region : send.content) send.bytes += region.size();
    if (!admit(context, send)) return;
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
    want(*pair.peer);
    if (!pair.blocked) drain(pair);
}

void Engine::send_to_self(Context& context, SendOperation& send) {
    InMessage& message = store_.make();
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
    // A matched probe only takes the message: its send need not wait until that is received.
    if (receive != nullptr && !receive->only_take) return deliver(message, *receive);
    const bool copies = !send.synchronous && send.bytes <= options_.eager_limit &&
                        self_bytes_ + send.bytes <= options_.shared.payload;
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

/// The message no longer needs the memory of its send, which ends now.
void Engine::end_local(InMessage& message) {
    SendOperation& send = *std::exchange(message.local, nullptr);
    locals_.erase(send);
    send.local_message = nullptr;
    send.state = SendOperation::State::ended;
}

void Engine::cancel_local(SendOperation& send, const Error& reason) {
    InMessage& message = *send.local_message;
    end_local(message);
    if (message.waiting) {
        end(message);
    } else {
        message.failure = reason;  // for whoever took it out of matching
    }
    fail(send, reason);
}

void Engine::drain(Pair& pair) {
    const auto block = [&] {
        if (!pair.blocked) pair.peer->blocked.push_back(pair);
        pair.blocked = true;
    };
    if (pair.begun_in && pair.context != nullptr && !begin_at(pair)) return block();
    while (SendOperation* send = pair.waiting.first()) {
        if (!announce(pair, *send)) return block();
    }
    if (pair.ended && !(collectives_.flush_said(pair) && end_at(pair))) block();
}

void Engine::drain(Peer& peer) {
    if (peer.link == nullptr) return;
    // Each gets one try: what stays blocked goes to the end of the list again.
    IntrusiveList<Pair, &Pair::blocked_hook> waiting;
    std::swap(waiting, peer.blocked);
    while (Pair* pair = waiting.pop_front()) {
        pair->blocked = false;
        drain(*pair);
    }
}

/// Tells the peer of the first waiting message, as far as credit goes: with its payload, without,
/// or not at all (false).
bool Engine::announce(Pair& pair, SendOperation& send) {
    Peer& peer = *pair.peer;
    if (peer.eager_full || !begin_at(pair)) return false;
    const bool small = send.bytes <= options_.eager_limit;
    const Amount head{.payload = 0, .headers = 1};
    const Amount full{
        .payload = small ? send.bytes : std::min<std::uint64_t>(send.bytes, options_.bulk_head),
        .headers = 1};
    // A larger message that must not end before it is matched holds its payload back.
    const bool may_travel = small || !send.synchronous;
    bool reserve = false;
    bool payload = may_travel && peer.shared_out.take(full);
    // A reserve is there for who has made the communicator, and said so.
    const auto take_reserve = [&](const Amount& amount) {
        return pair.begun_in && pair.reserve_out.take(amount);
    };
    if (!payload && may_travel) payload = reserve = take_reserve(full);
    if (!payload && send.bytes == 0) return false;
    if (!payload && !peer.shared_out.take(head)) {
        reserve = take_reserve(head);
        if (!reserve) return false;
    }
    const bool eager = small && payload;
    const bool written =
        eager ? write_eager(pair, send, reserve) : write_bulk_header(pair, send, reserve, !payload);
    if (!written) {
        const Amount& taken = payload ? full : head;
        CreditOut& pool = reserve ? pair.reserve_out : peer.shared_out;
        NEXAR_ASSERT(pool.give_back(taken.payload, taken.headers));
        peer.eager_full = true;
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
        peer.announced.emplace(MessageName{pair.context_id, send.sequence}, &send);
    } else {
        begin_stream(peer, send);
    }
    return true;
}

bool Engine::write_eager(Pair& pair, SendOperation& send, bool from_reserve) {
    const wire::EagerHeader header{header_of(pair, send, from_reserve)};
    std::array<std::byte, wire::kMessageHeaderFrameBytes> frame{};
    const auto size = wire::encode(header, frame);
    NEXAR_ASSERT(size.has_value() && *size == frame.size());
    return write_with_payload(*pair.peer->link, frame, send.content);
}

bool Engine::write_bulk_header(Pair& pair, SendOperation& send, bool from_reserve,
                               bool awaits_grant) {
    wire::BulkHeader header{header_of(pair, send, from_reserve)};
    header.awaits_grant = awaits_grant;
    std::array<std::byte, wire::kMessageHeaderFrameBytes> frame{};
    const auto size = wire::encode(header, frame);
    NEXAR_ASSERT(size.has_value() && *size == frame.size());
    const port::ConstBytes piece(frame);
    return pair.peer->link->write(port::Lane::eager, {&piece, 1});
}

void Engine::begin_stream(Peer& peer, SendOperation& send) {
    std::array<std::byte, wire::kBulkPreambleBytes> preamble{};
    const auto size = wire::encode(
        wire::Preamble{
            .lane = wire::Lane::bulk, .context = send.context->id, .sequence = send.sequence},
        preamble);
    NEXAR_ASSERT(size.has_value() && *size == preamble.size());
    send.state = SendOperation::State::streaming;
    send.stream = peer.link->send(send, {.priority = send.priority, .prefix = preamble});
    peer.streams_out.emplace(send.stream.value(), &send);
}

Result<void> Engine::on_grant(Peer& peer, const wire::Grant& grant) {
    const auto found = peer.announced.find({grant.context, grant.sequence});
    if (found == peer.announced.end()) {
        const auto pair = peer.pairs.find(grant.context);
        // One that was cancelled, or whose communicator ended, while the grant was under way.
        if (pair == peer.pairs.end() || grant.sequence < pair->second->next_out) return {};
        return Error(Errc::protocol_violation, "it granted a message that was never announced");
    }
    SendOperation& send = *found->second;
    peer.announced.erase(found);
    if (send.payload_sent) {
        send.state = SendOperation::State::ended;
        finish(send);
        return {};
    }
    begin_stream(peer, send);
    return {};
}

void Engine::on_released(Peer& peer, const port::Released& released) {
    if (calls_.released(peer, released) || collectives_.released(peer, released)) return;
    const auto found = peer.streams_out.find(released.stream.value());
    NEXAR_ASSERT(found != peer.streams_out.end());
    SendOperation& send = *found->second;
    peer.streams_out.erase(found);
    send.state = SendOperation::State::ended;
    if (aborted_) return fail(send, aborted_->within({.operation = "send"}));
    switch (released.outcome) {
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
            fail(send,
                 Error(Errc::link_closed, "the link went down before the message had arrived whole",
                       {.rank = public_rank(send.to),
                        .operation = "send",
                        .sequence = send.sequence}));
            return;
    }
}

Result<void> Engine::on_credit(Peer& peer, const wire::Credit& credit) {
    CreditOut* pool = &peer.shared_out;
    if (credit.pool != wire::CreditPool::shared) {
        const auto found = peer.pairs.find(credit.context);
        if (found == peer.pairs.end()) return {};  // of one that ended while it was under way
        if (credit.pool != wire::CreditPool::communicator) {
            NEXAR_TRY(collectives_.on_credit(*found->second, credit));
            collectives_.drain(peer);
            return {};
        }
        pool = &found->second->reserve_out;
    }
    if (!pool->give_back(credit.payload_bytes, credit.headers)) {
        return Error(Errc::protocol_violation, "it gave back more credit than was taken");
    }
    drain(peer);
    return {};
}

}  // namespace nexar::engine
