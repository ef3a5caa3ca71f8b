// Messages of collectives to peers.

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include "base/assert.hpp"
#include "engine/collective_runner.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

/// The credit that a message takes until its operation is called.
Amount CollectiveRunner::charge_of(const wire::CollectiveHeader& header) const noexcept {
    const bool on_lane = header.place == wire::PayloadPlace::lane;
    return {
        .payload = on_lane ? header.size : std::min<std::uint64_t>(header.size, limits_.bulk_head),
        .headers = 1};
}

void CollectiveRunner::block(Pair& pair) {
    if (std::exchange(pair.collectives_blocked, true)) return;
    pair.peer->collectives.blocked.push_back(pair);
}

/// Queues a message behind those of the same and of earlier operations.
void CollectiveRunner::enqueue(CollectiveSend& send) {
    Pair& pair = *send.pair;
    auto& waiting = pair.collectives->waiting;
    CollectiveSend* place = waiting.last();
    while (place != nullptr && place->operation->number > send.operation->number) {
        place = decltype(pair.collectives->waiting)::before(*place);
    }
    waiting.insert_after(place, send);
    send.state = CollectiveSend::State::waiting;
    // If it is not the first, it waits behind messages that could not be written.
    if (!pair.collectives_blocked || waiting.first() == &send) {
        if (!pair.peer->transfers.up()) services_->want(*pair.peer);
        drain(pair);
    }
    // If a drain of this pair is in progress, it will write the message.
    if (send.state != CollectiveSend::State::waiting || pair.collectives->draining) return;
    services_->recording().waits(*send.operation, pair.rank, send.bytes,
                                 wait_reason(pair.peer->transfers));
}

void CollectiveRunner::drain(Pair& pair) {
    PairCollectives* const here = pair.collectives.get();
    // A drain that is in progress also writes what a written message makes possible.
    if (here == nullptr || pair.context == nullptr || here->draining) return;
    here->draining = true;
    if (!write_waiting(pair)) {
        block(pair);
    } else if (std::exchange(pair.collectives_blocked, false)) {
        pair.peer->collectives.blocked.erase(pair);
    }
    here->draining = false;
}

/// Returns false if some messages could not be written.
bool CollectiveRunner::write_waiting(Pair& pair) {
    PairCollectives* const here = pair.collectives.get();
    while (!here->waiting.empty() || !here->said.empty()) {
        const PeerTransfers& transfers = pair.peer->transfers;
        const bool open = transfers.usable() && !transfers.full(port::Lane::eager) &&
                          (pair.begun_out || services_->introduce(pair)) && pair.begun_in;
        if (!open || !flush_said(pair)) return false;
        CollectiveSend* const first = here->waiting.first();
        if (first != nullptr && !write(*first)) return false;
    }
    return true;
}

void CollectiveRunner::drain(Peer& peer) {
    if (!peer.transfers.up()) return;
    // Each pair gets one try; if it stays blocked it returns to the end of the list.
    IntrusiveList<Pair, &Pair::collectives_hook> waiting;
    std::swap(waiting, peer.collectives.blocked);
    while (Pair* pair = waiting.pop_front()) {
        pair->collectives_blocked = false;
        drain(*pair);
    }
}

bool CollectiveRunner::flush_said(Pair& pair) {
    if (!pair.collectives) return true;
    PeerTransfers& transfers = pair.peer->transfers;
    auto& said = pair.collectives->said;
    while (!said.empty() && transfers.usable() &&
           transfers.write(port::Lane::eager, said.front())) {
        said.pop_front();
    }
    return said.empty();
}

/// Writes a message or begins its stream. Returns false if there is no credit or no room. The
/// message and its operation may have ended afterwards.
bool CollectiveRunner::write(CollectiveSend& send) {
    Pair& pair = *send.pair;
    PairCollectives& here = *pair.collectives;
    CollectiveOperation& operation = *send.operation;
    const bool on_lane = send.bytes <= pair.context->collectives.profile.eager_bytes;
    const auto place = on_lane ? wire::PayloadPlace::lane : wire::PayloadPlace::stream;
    const Amount charge = charge_of({.size = send.bytes, .place = place});
    bool reserve = false;
    if (!here.pool_out.take(charge)) {
        reserve =
            here.unsent.front().operation == operation.number && here.reserve_out.take(charge);
        if (!reserve) return false;
    }
    if (!write_header(send, reserve, on_lane)) {
        NEXAR_ASSERT(
            (reserve ? here.reserve_out : here.pool_out).give_back(charge.payload, charge.headers));
        return false;
    }
    here.waiting.erase(send);
    if (!on_lane) begin_stream(send);
    here.next_out = Sequence(here.next_out.value() + 1);
    count_written(pair, operation.number);
    if (on_lane) {
        send.state = CollectiveSend::State::ended;
        finish_step(operation, send.step);
        pump(operation);
    }
    return true;
}

bool CollectiveRunner::write_header(const CollectiveSend& send, bool from_reserve, bool on_lane) {
    const CollectiveOperation& operation = *send.operation;
    const wire::CollectiveHeader header{
        .context = send.pair->context_id,
        .sequence = send.pair->collectives->next_out,
        .operation = operation.number,
        .message = operation.plan->step(send.step).message,
        .size = send.bytes,
        .fingerprint = operation.terms.fingerprint,
        .place = on_lane ? wire::PayloadPlace::lane : wire::PayloadPlace::stream,
        .from_reserve = from_reserve};
    const std::span<const port::ConstBytes> content(send.content);
    return send.pair->peer->transfers.write_message(port::Lane::eager, header,
                                                    content.first(on_lane ? content.size() : 0));
}

void CollectiveRunner::begin_stream(CollectiveSend& send) {
    send.state = CollectiveSend::State::streaming;
    send.pair->peer->transfers.send(send,
                                    {.kind = TransferKind::collective,
                                     .context = send.pair->context_id,
                                     .number = send.pair->collectives->next_out.value()},
                                    port::Priority::bulk);
    ++send.operation->links;
}

void CollectiveRunner::count_written(Pair& pair, std::uint64_t operation) {
    auto& unsent = pair.collectives->unsent;
    const auto found = std::ranges::find(unsent, operation, &PairCollectives::Unsent::operation);
    NEXAR_ASSERT(found != unsent.end() && found->messages > 0);
    --found->messages;
    while (!unsent.empty() && unsent.front().messages == 0) unsent.pop_front();
}

/// Keeps `unsent` in the order of operations: a reserved one precedes those called later.
void CollectiveRunner::add_unsent(Pair& pair, std::uint64_t operation, std::uint32_t messages) {
    if (!pair.collectives) pair.collectives = std::make_unique<PairCollectives>();
    auto& unsent = pair.collectives->unsent;
    auto place = unsent.end();
    while (place != unsent.begin() && std::prev(place)->operation > operation) --place;
    unsent.insert(place, {.operation = operation, .messages = messages});
}

/// Undoes add_unsent() of reserve().
void CollectiveRunner::forget_places(Context& context, std::uint64_t operation) {
    for (Pair* const pair : context.pairs) {
        if (pair == nullptr || !pair->collectives) continue;
        auto& unsent = pair->collectives->unsent;
        std::erase_if(
            unsent, [&](const PairCollectives::Unsent& one) { return one.operation == operation; });
        while (!unsent.empty() && unsent.front().messages == 0) unsent.pop_front();
    }
}

void CollectiveRunner::drain_all(Context& context) {
    for (Pair* const pair : context.pairs) {
        if (pair != nullptr) drain(*pair);
    }
}

/// Forgets the unsent messages of an operation that failed.
void CollectiveRunner::forget_unsent(CollectiveOperation& operation) {
    if (operation.plan == nullptr) return;
    for (const Plan::Outgoing& outgoing : operation.plan->outgoing()) {
        Pair& pair = *operation.context->pairs[outgoing.peer];
        auto& unsent = pair.collectives->unsent;
        std::erase_if(unsent, [&](const PairCollectives::Unsent& one) {
            return one.operation == operation.number;
        });
        while (!unsent.empty() && unsent.front().messages == 0) unsent.pop_front();
    }
}

void CollectiveSend::released(port::SendOutcome outcome) {
    operation->runner->released(*this, outcome);
}

void CollectiveRunner::released(CollectiveSend& send, port::SendOutcome outcome) {
    send.state = CollectiveSend::State::ended;
    CollectiveOperation& operation = *send.operation;
    NEXAR_ASSERT(operation.links > 0);
    --operation.links;
    if (operation.failure) return conclude(operation);
    switch (outcome) {
        case port::SendOutcome::delivered:
            finish_step(operation, send.step);
            pump(operation);
            break;
        case port::SendOutcome::refused:
        case port::SendOutcome::cancelled:
        case port::SendOutcome::cancelled_late:
            gave_up(operation, send.pair->rank);
            break;
        case port::SendOutcome::link_lost:  // down() follows, with the reason
            break;
    }
}

template <class Message>
void CollectiveRunner::say(Pair& pair, const Message& message) {
    if (pair.peer->lost || pair.peer->transfers.over()) return;
    if constexpr (std::is_same_v<Message, wire::CollectiveAbort>) {
        // The engine tells every member of an abort, and nobody listens to an evicted node.
        if (message.code == Errc::aborted || message.code == Errc::evicted) return;
    }
    if (!pair.collectives) pair.collectives = std::make_unique<PairCollectives>();
    pair.collectives->said.push_back(wire::to_bytes(message));
    if (!pair.collectives_blocked) drain(pair);
}

template void CollectiveRunner::say(Pair&, const wire::CollectiveMismatch&);
template void CollectiveRunner::say(Pair&, const wire::CollectiveAbort&);

Result<void> CollectiveRunner::on_credit(Peer& peer, Pair& pair, const wire::Credit& credit) {
    const bool reserve = credit.pool == wire::CreditPool::collective_reserve;
    if (pair.collectives) {
        CreditOut& pool = reserve ? pair.collectives->reserve_out : pair.collectives->pool_out;
        if (pool.give_back(credit.payload_bytes, credit.headers)) {
            drain(peer);
            return {};
        }
    }
    return Error(Errc::protocol_violation, "the peer returned more credit than it had received");
}

}  // namespace nexar::engine
