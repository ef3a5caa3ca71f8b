#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "engine/messages.hpp"

namespace nexar::engine {

namespace {

Error truncated(const InMessage& message, std::uint64_t capacity) {
    return Error(
        Errc::truncated,
        fmt::format("a message of {} bytes with tag {} matched a receive of {} bytes; the "
                    "message is lost; use a buffer of at least its size (probe returns it)",
                    message.bytes, message.tag.value(), capacity),
        {.rank = public_rank(message.source),
         .operation = "receive",
         .sequence = message.sequence});
}

}  // namespace

/// The error if no message can match any more; nullopt: one can.
std::optional<Error> Messages::nobody_sends(const Context& context, const Pattern& pattern) {
    // This rank itself can always send, so a receive from any source can always be matched.
    if (!pattern.source || pattern.source == context.me) return std::nullopt;
    const Pair& pair = *context.pairs[pattern.source->value()];
    if (!pair.peer->lost) return std::nullopt;
    return pair.peer->lost->within({.rank = public_rank(pair.rank)});
}

void Messages::start(Context& context, ReceiveOperation& receive) {
    if (Arrived* found = context.matcher.find(receive.pattern)) {
        auto& message = static_cast<InMessage&>(*found);
        context.matcher.remove(message);
        deliver(message, receive);
        return;
    }
    if (const auto reason = nobody_sends(context, receive.pattern)) {
        fail(receive, reason->within({.operation = "receive"}));
        return;
    }
    if (!receive.pattern.source) warn_if_alone(context);
    context.matcher.add(receive);
}

void Messages::start(InMessage& message, ReceiveOperation& receive) {
    receive.only_take = false;
    deliver(message, receive);
}

void Messages::start(Context& context, ProbeOperation& probe) {
    if (const auto found = look(context, probe.pattern)) {
        probe.envelope = *found;
        finish(probe);
        return;
    }
    if (const auto reason = nobody_sends(context, probe.pattern)) {
        fail(probe, reason->within({.operation = "probe"}));
        return;
    }
    if (!probe.pattern.source) warn_if_alone(context);
    context.probes.push_back(probe);
}

std::optional<Envelope> Messages::look(Context& context, const Pattern& pattern) {
    const Arrived* found = context.matcher.find(pattern);
    if (found == nullptr) return std::nullopt;
    return envelope_of(*static_cast<const InMessage*>(found));
}

InMessage* Messages::take(Context& context, const Pattern& pattern) {
    Arrived* found = context.matcher.find(pattern);
    if (found == nullptr) return nullptr;
    context.matcher.remove(*found);
    auto& message = static_cast<InMessage&>(*found);
    give_back(message);
    return &message;
}

void Messages::drop(InMessage& message) {
    refuse_payload(message);
}

/// How much of a payload may arrive before it is matched.
std::uint64_t Messages::ahead_of_match(const InMessage& message) const noexcept {
    return message.bulk ? std::min<std::uint64_t>(message.bytes, limits_.bulk_head) : message.bytes;
}

/// Returns false if the peer had no credit for the message.
bool Messages::charge(Pair& pair, InMessage& message) const noexcept {
    message.charge = {.payload = message.awaits_grant ? 0 : ahead_of_match(message), .headers = 1};
    if (!message.from_reserve) return pair.peer->messages.shared_in.came(message.charge);
    return pair.begun_out && pair.reserve_in.came(message.charge);
}

InMessage& Messages::make(Peer& peer, Pair& pair, const wire::MessageHeader& header, bool bulk) {
    InMessage& message = store_.make();
    message.messages = this;
    message.context = pair.context;
    message.peer = &peer;
    message.source = pair.rank;
    message.tag = header.tag;
    message.context_id = header.context;
    message.sequence = header.sequence;
    message.bytes = header.size;
    message.bulk = bulk;
    message.awaits_grant = header.awaits_grant;
    message.synchronous = header.synchronous;
    message.from_reserve = header.from_reserve;
    return message;
}

/// True when the stream of a message has arrived, or the peer has withdrawn the message. Only a
/// message with a stream of its own can be withdrawn.
bool Messages::stream_known(const Peer& peer, const wire::MessageHeader& header) {
    const auto& taken_back = peer.messages.taken_back;
    if (!peer.transfers.has_early() && taken_back.empty()) return false;
    return taken_back.contains({header.context, header.sequence}) ||
           peer.transfers.is_early(transfer_name(header.context, header.sequence));
}

/// Lists a message whose payload travels on a stream. Returns false if it had been withdrawn; it is
/// then destroyed.
bool Messages::list_bulk(Peer& peer, InMessage& message) {
    const MessageName name{message.context_id, message.sequence};
    peer.messages.bulk_in.emplace(name, &message);
    peer.transfers.expect(transfer_name(message.context_id, message.sequence), message);
    if (peer.messages.taken_back.erase(name) == 0) return true;
    answer(peer, name, wire::WithdrawStep::done);
    message.discard = true;
    withdraw(message, Error(Errc::cancelled, "the sender cancelled the message"));
    return false;
}

Result<LanePayload> Messages::on_header(Peer& peer, Pair& pair, const wire::MessageHeader& header,
                                        bool bulk) {
    if (header.sequence != pair.next_in) {
        return Error(
            Errc::protocol_violation,
            fmt::format("the peer sent message {} of a communicator, but message {} was expected",
                        header.sequence.value(), pair.next_in.value()));
    }
    if (!bulk && stream_known(peer, header)) {
        return PeerTransfers::sent_twice(TransferKind::message);
    }
    if (!bulk && deliver_at_once(peer, pair, header, peer.transfers.behind_frame())) {
        return LanePayload{.bytes = header.size};
    }
    if (is_over(pair)) return drop_header(peer, pair, header, bulk);
    InMessage& message = make(peer, pair, header, bulk);
    if (!charge(pair, message)) {
        store_.end(message);
        return Error(
            Errc::protocol_violation,
            fmt::format("the peer sent a message of {} bytes without credit for it", header.size));
    }
    pair.next_in = Sequence(pair.next_in.value() + 1);
    message.complete = !bulk && message.bytes == 0;
    if (!message.complete) peer.messages.incomplete.push_back(message);
    if (bulk && !list_bulk(peer, message)) return LanePayload{};
    // A message without payload may be destroyed here.
    const bool payload_follows = !bulk && header.size != 0;
    if (pair.ended) {
        give_back(message);
        refuse_payload(message);
    } else if (pair.context != nullptr) {
        match(message);
    } else {
        store_payload(message);
        pair.early.push_back(&message);
    }
    if (!payload_follows) return LanePayload{};
    // Without memory for it the payload has no receiver, and must not count as complete.
    if (const auto& violation = peer.transfers.violation()) return *violation;
    return LanePayload{.bytes = header.size, .receiver = &message};
}

bool Messages::take_at_once(Peer& peer, Pair& pair, const wire::MessageHeader& header,
                            port::ConstBytes behind) {
    return header.sequence == pair.next_in && !stream_known(peer, header) &&
           deliver_at_once(peer, pair, header, behind);
}

/// Delivers a message whose payload has arrived with its header to a receive that waits for it.
/// Returns false, having done nothing, if that is not possible.
bool Messages::deliver_at_once(Peer& peer, Pair& pair, const wire::MessageHeader& header,
                               port::ConstBytes behind) {
    if (behind.size() < header.size || header.synchronous || header.from_reserve || pair.ended ||
        pair.context == nullptr) {
        return false;
    }
    Matcher& matcher = pair.context->matcher;
    PostedReceive* const posted = matcher.first_posted(pair.rank, header.tag);
    if (posted == nullptr) return false;
    auto& receive = static_cast<ReceiveOperation&>(*posted);
    const Amount charge{.payload = header.size, .headers = 1};
    CreditIn& pool = peer.messages.shared_in;
    if (receive.only_take || header.size > receive.capacity() || !pool.came(charge)) return false;
    matcher.remove(receive);
    pair.next_in = Sequence(pair.next_in.value() + 1);
    receive.envelope = {.source = pair.rank, .tag = header.tag, .bytes = header.size};
    services_->recording().matched(*pair.context, receive.envelope);
    give_back(pair, charge, false);
    const auto size = static_cast<std::size_t>(header.size);
    const std::size_t written = receive.write(0, behind.first(size));
    NEXAR_ASSERT(written == size);
    finish(receive);
    return true;
}

/// Makes room for a payload that no receive matches yet. If there is no memory, a bulk payload
/// waits in the link.
void Messages::store_payload(InMessage& message) {
    if (message.complete || message.stored != 0 || message.local != nullptr) return;
    if (message.bulk && message.stream == nullptr) return;
    if (!store_.reserve(message, static_cast<std::size_t>(ahead_of_match(message))) &&
        !message.bulk) {
        message.peer->transfers.cut_off(
            Error(Errc::out_of_memory, "this node has no memory for a message of the peer"));
    }
}

void Messages::match(InMessage& message) {
    Context& context = *message.context;
    if (PostedReceive* posted = context.matcher.take_posted(message.source, message.tag)) {
        deliver(message, static_cast<ReceiveOperation&>(*posted));
        return;
    }
    store_payload(message);
    context.matcher.add(message);
    for (ProbeOperation* probe = context.probes.first(); probe != nullptr;) {
        ProbeOperation& found = *probe;
        probe = decltype(context.probes)::after(found);
        if (!found.pattern.fits(message.source, message.tag)) continue;
        context.probes.erase(found);
        found.envelope = envelope_of(message);
        finish(found);
    }
}

void Messages::give_back(InMessage& message) {
    if (message.charge.headers == 0) return;
    Peer& peer = *message.peer;
    const Amount charge = std::exchange(message.charge, {});
    Pair& pair = message.context != nullptr ? *message.context->pairs[message.source.value()]
                                            : *peer.pairs.at(message.context_id);
    give_back(pair, charge, message.from_reserve);
}

void Messages::give_back(Pair& pair, const Amount& charge, bool reserve) {
    Peer& peer = *pair.peer;
    CreditIn& pool = reserve ? pair.reserve_in : peer.messages.shared_in;
    if (!pool.matched(charge) || !peer.transfers.up()) return;
    peer.transfers.say_message(
        port::Lane::control,
        wire::Credit{.pool = reserve ? wire::CreditPool::communicator : wire::CreditPool::shared,
                     .context = reserve ? pair.context_id : ContextId{},
                     .payload_bytes = pool.owed().payload,
                     .headers = pool.owed().headers});
    pool.gave_back();
}

void Messages::grant(InMessage& message) {
    message.awaits_grant = false;
    message.peer->transfers.say_message(port::Lane::control,
                                        wire::Grant{.context = message.context_id,
                                                    .sequence = message.sequence,
                                                    .window_bytes = message.bytes,
                                                    .link = {}});
}

void Messages::deliver(InMessage& message, ReceiveOperation& receive) {
    receive.envelope = envelope_of(message);
    if (!receive.only_take) services_->recording().matched(*message.context, receive.envelope);
    give_back(message);
    if (receive.only_take) {
        store_payload(message);
        receive.message = &message;
        finish(receive);
        return;
    }
    if (message.failure) {
        fail(receive, *message.failure);
        refuse_payload(message);
        return;
    }
    if (const std::uint64_t capacity = receive.capacity(); message.bytes > capacity) {
        fail(receive, truncated(message, capacity));
        refuse_payload(message);
        return;
    }
    if (message.synchronous && !message.awaits_grant && message.peer != nullptr) grant(message);
    message.receiver = &receive;
    receive.matched = &message;
    if (message.local != nullptr) {
        deliver_local(message);
    } else if (message.complete) {
        receive.write(0, MessageStore::storage(message));
        finish(receive);
        end(message);
    } else {
        deliver_arriving(message);
    }
}

void Messages::deliver_local(InMessage& message) {
    SendOperation& send = *message.local;
    std::uint64_t offset = 0;
    for (const port::ConstBytes region : send.content) {
        message.receiver->write(offset, region);
        offset += region.size();
    }
    end_local(message);
    finish(send);
    finish(*message.receiver);
    end(message);
}

/// The rest of the payload will go straight to the receive.
void Messages::deliver_arriving(InMessage& message) {
    if (message.awaits_grant) grant(message);
    if (message.received != 0) {
        const port::Bytes stored = MessageStore::storage(message);
        message.receiver->write(0, stored.first(static_cast<std::size_t>(message.received)));
    }
    if (message.stream != nullptr) message.stream->open();
}

/// Refuses the payload of a message that is not needed. The send ends as if the message had been
/// received.
void Messages::refuse_payload(InMessage& message) {
    if (message.local != nullptr) {
        SendOperation& send = *message.local;
        end_local(message);
        finish(send);
    }
    // A failed message whose stream is being refused lives until the stream is aborted.
    const bool failed = message.failure.has_value();
    if (message.peer == nullptr || message.complete || (failed && message.stream == nullptr)) {
        end(message);
        return;
    }
    const bool over = message.context != nullptr && message.context->over;
    if (!failed && !over && (message.awaits_grant || message.synchronous)) grant(message);
    message.discard = true;
    if (message.stream != nullptr) message.stream->refuse();
}

void Messages::end(InMessage& message) {
    if (message.waiting) message.context->matcher.remove(message);
    if (message.peer == nullptr && message.complete) self_bytes_ -= message.bytes;
    store_.end(message);
}

}  // namespace nexar::engine
