#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "engine/engine.hpp"

namespace nexar::engine {

namespace {

Error truncated(const InMessage& message, std::uint64_t capacity) {
    return Error(Errc::truncated,
                 fmt::format("a message of {} bytes with tag {} matched a receive of {} bytes; the "
                             "message is lost, receive with at least its size (probe tells it)",
                             message.bytes, message.tag.value(), capacity),
                 {.rank = public_rank(message.source),
                  .operation = "receive",
                  .sequence = message.sequence});
}

}  // namespace

/// Why no message can come that fits, if that is so.
std::optional<Error> Engine::nobody_sends(const Context& context, const Pattern& pattern) {
    // This rank itself can always send, so somebody is left who fits an open source.
    if (!pattern.source || pattern.source == context.me) return std::nullopt;
    const Pair& pair = *context.pairs[pattern.source->value()];
    if (!pair.peer->lost) return std::nullopt;
    return pair.peer->lost->within({.rank = public_rank(pair.rank)});
}

void Engine::start(Context& context, ReceiveOperation& receive) {
    receive.message = nullptr;
    if (!admit(context, receive)) return;
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

void Engine::start(InMessage& message, ReceiveOperation& receive) {
    receive.message = nullptr;
    if (!admit(*message.context, receive)) {
        drop(message);
        return;
    }
    receive.only_take = false;
    deliver(message, receive);
}

void Engine::start(Context& context, ProbeOperation& probe) {
    if (!admit(context, probe)) return;
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

InMessage* Engine::take(Context& context, const Pattern& pattern) {
    Arrived* found = context.matcher.find(pattern);
    if (found == nullptr) return nullptr;
    context.matcher.remove(*found);
    auto& message = static_cast<InMessage&>(*found);
    give_back(message);
    return &message;
}

void Engine::drop(InMessage& message) {
    refuse_payload(message);
}

/// How much of a payload may come before it is matched.
std::uint64_t Engine::ahead_of_match(const InMessage& message) const noexcept {
    return message.bulk ? std::min<std::uint64_t>(message.bytes, options_.bulk_head)
                        : message.bytes;
}

Result<void> Engine::charge(Pair& pair, InMessage& message) {
    message.charge = {.payload = message.awaits_grant ? 0 : ahead_of_match(message), .headers = 1};
    CreditIn& pool = message.from_reserve ? pair.reserve_in : pair.peer->shared_in;
    const bool open = !message.from_reserve || pair.begun_out;
    if (open && pool.came(message.charge)) return {};
    return Error(Errc::protocol_violation,
                 fmt::format("it sent a message of {} bytes without credit for it", message.bytes));
}

Result<InMessage*> Engine::on_header(Peer& peer, const wire::MessageHeader& header, bool bulk) {
    NEXAR_TRY_VALUE(pair, introduced_pair(peer, header.context));
    if (header.sequence != pair->next_in) {
        return Error(Errc::protocol_violation,
                     fmt::format("message {} of a communicator came where {} was due",
                                 header.sequence.value(), pair->next_in.value()));
    }
    const MessageName name{header.context, header.sequence};
    // Only what has a stream of its own gets one, or is taken back.
    if (!bulk && !(peer.early_streams.empty() && peer.taken_back.empty()) &&
        (peer.early_streams.contains(name) || peer.taken_back.contains(name))) {
        return Error(Errc::protocol_violation, "it sent the payload of one message two ways");
    }
    InMessage& message = store_.make();
    message.context = pair->context;
    message.peer = &peer;
    message.source = pair->rank;
    message.tag = header.tag;
    message.context_id = header.context;
    message.sequence = header.sequence;
    message.bytes = header.size;
    message.bulk = bulk;
    message.awaits_grant = header.awaits_grant;
    message.synchronous = header.synchronous;
    message.from_reserve = header.from_reserve;
    if (auto charged = charge(*pair, message); !charged) {
        store_.end(message);
        return charged.error();
    }
    pair->next_in = Sequence(pair->next_in.value() + 1);
    message.complete = !bulk && message.bytes == 0;
    if (!message.complete) peer.incomplete.push_back(message);
    if (bulk) {
        peer.bulk_in.emplace(name, &message);
        if (const auto early = peer.early_streams.find(name); early != peer.early_streams.end()) {
            early->second->early = false;
            attach(message, *early->second);
            peer.early_streams.erase(early);
        }
    }
    if (bulk && peer.taken_back.erase(name) != 0) {
        answer(peer, name, wire::WithdrawStep::done);
        message.discard = true;
        withdraw(message, Error(Errc::cancelled, "the sender cancelled the message"));
        return nullptr;
    }
    // A message without payload may be gone after this.
    const bool payload_follows = !bulk && header.size != 0;
    if (pair->ended) {
        give_back(message);
        refuse_payload(message);
    } else if (pair->context != nullptr) {
        match(message);
    } else {
        store_payload(message);
        pair->early.push_back(&message);
    }
    return payload_follows ? &message : nullptr;
}

/// Makes room for a payload that nobody asked for yet. Without memory a bulk one waits in the link.
void Engine::store_payload(InMessage& message) {
    if (message.complete || message.stored != 0 || message.local != nullptr) return;
    if (message.bulk && message.stream == nullptr) return;
    if (!store_.reserve(message, static_cast<std::size_t>(ahead_of_match(message))) &&
        !message.bulk) {
        violated(*message.peer, Error(Errc::out_of_memory, "there is no memory for its message"));
    }
}

void Engine::match(InMessage& message) {
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

void Engine::give_back(InMessage& message) {
    if (message.charge.headers == 0) return;
    Peer& peer = *message.peer;
    const Amount charge = std::exchange(message.charge, {});
    Pair& pair = message.context != nullptr ? *message.context->pairs[message.source.value()]
                                            : *peer.pairs.at(message.context_id);
    CreditIn& pool = message.from_reserve ? pair.reserve_in : peer.shared_in;
    if (!pool.matched(charge) || peer.link == nullptr) return;
    const bool reserve = message.from_reserve;
    send_control(peer, wire::Credit{.pool = reserve ? wire::CreditPool::communicator
                                                    : wire::CreditPool::shared,
                                    .context = reserve ? pair.context_id : ContextId{},
                                    .payload_bytes = pool.owed().payload,
                                    .headers = pool.owed().headers});
    pool.gave_back();
}

void Engine::grant(InMessage& message) {
    message.awaits_grant = false;
    send_control(*message.peer, wire::Grant{.context = message.context_id,
                                            .sequence = message.sequence,
                                            .window_bytes = message.bytes,
                                            .link = {}});
}

void Engine::deliver(InMessage& message, ReceiveOperation& receive) {
    receive.envelope = envelope_of(message);
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
    } else if (message.bulk) {
        deliver_bulk(message);
    } else {
        message.direct = message.received == 0;
    }
}

void Engine::deliver_local(InMessage& message) {
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

void Engine::deliver_bulk(InMessage& message) {
    if (message.awaits_grant) grant(message);
    if (message.stream == nullptr) return;
    const port::Bytes stored = MessageStore::storage(message);
    message.receiver->write(0, stored.first(static_cast<std::size_t>(message.received)));
    message.peer->link->open_window(message.stream->id());
    message.peer->link->wake_sink(message.stream->id());
}

/// The payload of a message is not wanted any more, or never was; the sender's side ends as if it
/// had been.
void Engine::refuse_payload(InMessage& message) {
    if (message.local != nullptr) {
        SendOperation& send = *message.local;
        end_local(message);
        finish(send);
    }
    // One that failed while its stream is being refused is the stream's until Aborted.
    const bool failed = message.failure.has_value();
    if (message.peer == nullptr || message.complete || (failed && message.stream == nullptr)) {
        end(message);
        return;
    }
    if (!failed && (message.awaits_grant || message.synchronous)) grant(message);
    message.discard = true;
    if (message.stream != nullptr) refuse(*message.stream);
}

void Engine::refuse(InBulk& stream) {
    if (std::exchange(stream.refused, true)) return;
    if (stream.peer().link != nullptr) stream.peer().link->refuse(stream.id());
}

/// All of an eager payload came.
void Engine::payload_complete(InMessage& message) {
    message.peer->incomplete.erase(message);
    message.complete = true;
    if (message.receiver != nullptr) {
        if (!message.direct) message.receiver->write(0, MessageStore::storage(message));
        finish(*message.receiver);
    }
    if (message.receiver != nullptr || message.discard) end(message);
}

void Engine::attach(InMessage& message, InBulk& stream) {
    message.stream = &stream;
    stream.message = &message;
    if (message.discard) {
        refuse(stream);
    } else if (message.receiver != nullptr) {
        stream.peer().link->open_window(stream.id());
    } else {
        store_payload(message);
    }
    stream.peer().link->wake_sink(stream.id());
}

void Engine::end(InMessage& message) {
    if (message.waiting) message.context->matcher.remove(message);
    if (message.peer == nullptr && message.complete) self_bytes_ -= message.bytes;
    store_.end(message);
}

}  // namespace nexar::engine
