// Messages of collectives from peers.

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/try.hpp"
#include "engine/collective_runner.hpp"
#include "engine/collective_words.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"

namespace nexar::engine {

Result<LanePayload> CollectiveRunner::on_header(Peer& peer, Pair& pair,
                                                const wire::CollectiveHeader& header) {
    const bool on_lane = header.place == wire::PayloadPlace::lane;
    if (pair.ended || is_over(pair)) return LanePayload{.bytes = on_lane ? header.size : 0};
    if (pair.context == nullptr || !pair.begun_out) {
        return Error(Errc::protocol_violation,
                     "the peer runs a collective in a communicator that this side has not made");
    }
    if (!pair.collectives) pair.collectives = std::make_unique<PairCollectives>();
    PairCollectives& here = *pair.collectives;
    if (header.sequence != here.next_in) {
        return Error(
            Errc::protocol_violation,
            fmt::format("the peer sent message {} of its collectives, but message {} was expected",
                        header.sequence.value(), here.next_in.value()));
    }
    here.next_in = Sequence(here.next_in.value() + 1);
    CreditIn& pool = header.from_reserve ? here.reserve_in : here.pool_in;
    if (!pool.came(charge_of(header))) {
        return Error(Errc::protocol_violation,
                     fmt::format("the peer sent {} bytes of a collective without credit for them",
                                 header.size));
    }
    const TransferName name{.kind = TransferKind::collective,
                            .context = header.context,
                            .number = header.sequence.value()};
    if (on_lane) {
        if (peer.transfers.is_early(name)) return PeerTransfers::sent_twice(name.kind);
        if (header.size == 0) {
            arrived(pair, header, {});
            return LanePayload{};
        }
        CollectiveOnLane& lane = peer.collectives.on_lane;
        lane.runner = this;
        lane.pair = &pair;
        lane.header = header;
        lane.bytes = header.size;
        lane.content.resize(static_cast<std::size_t>(header.size));
        return LanePayload{.bytes = header.size, .receiver = &lane};
    }
    auto owned = std::make_unique<CollectiveIn>();
    CollectiveIn& in = *owned;
    in.runner = this;
    in.pair = &pair;
    in.header = header;
    in.bytes = header.size;
    here.streams.emplace(header.sequence.value(), std::move(owned));
    peer.transfers.expect(name, in);
    arrived(pair, in);
    return LanePayload{};
}

std::size_t CollectiveOnLane::write(std::uint64_t offset, port::ConstBytes from) noexcept {
    if (pair != nullptr) std::memcpy(content.data() + offset, from.data(), from.size());
    return from.size();
}

void CollectiveOnLane::finished(std::uint64_t /*came*/) {
    Pair* const from = std::exchange(pair, nullptr);
    if (from == nullptr) return;
    Peer& peer = *from->peer;
    runner->arrived(*from, header, content);
    peer.transfers.offer_rests();
}

/// Gives back the credit of a message whose operation was called, or never will be.
void CollectiveRunner::give_back(Pair& pair, const wire::CollectiveHeader& header) {
    const bool reserve = header.from_reserve;
    CreditIn& pool = reserve ? pair.collectives->reserve_in : pair.collectives->pool_in;
    PeerTransfers& transfers = pair.peer->transfers;
    if (!pool.matched(charge_of(header)) || !transfers.up()) return;
    transfers.say_message(port::Lane::control,
                          wire::Credit{.pool = reserve ? wire::CreditPool::collective_reserve
                                                       : wire::CreditPool::collective,
                                       .context = pair.context_id,
                                       .payload_bytes = pool.owed().payload,
                                       .headers = pool.owed().headers});
    pool.gave_back();
}

/// Where to keep early arrivals for an operation that has not been called yet. nullptr: the peer
/// has too many such operations and is disconnected.
EarlyOperation* CollectiveRunner::early(Pair& pair, std::uint64_t number) {
    auto& all = pair.context->collectives.early;
    if (const auto found = all.find(number); found != all.end()) return &found->second;
    // Counted per peer: one peer must not use up the share of another.
    if (!pair.collectives) pair.collectives = std::make_unique<PairCollectives>();
    if (pair.collectives->ahead >= limits_.max_early) {
        pair.peer->transfers.cut_off(
            Error(Errc::limit_exceeded,
                  fmt::format("the peer is more than {} collectives ahead", limits_.max_early)));
        return nullptr;
    }
    ++pair.collectives->ahead;
    EarlyOperation& made = all[number];
    made.first = &pair;
    return &made;
}

/// Removes and returns the early arrivals for an operation that is being called.
EarlyOperation CollectiveRunner::called(Context& context, std::uint64_t number) {
    auto& all = context.collectives.early;
    const auto found = all.find(number);
    if (found == all.end()) return {};
    EarlyOperation known = std::move(found->second);
    all.erase(found);
    --known.first->collectives->ahead;
    return known;
}

void CollectiveRunner::arrived(Pair& pair, const wire::CollectiveHeader& header,
                               port::ConstBytes payload) {
    if (pair.context == nullptr) return;  // the communicator has ended meanwhile
    const Context& context = *pair.context;
    if (!context.collectives.is_called(header.operation)) {
        if (EarlyOperation* known = early(pair, header.operation)) {
            known->messages.push_back(
                {.pair = &pair, .header = header, .payload = {payload.begin(), payload.end()}});
        }
        return;
    }
    give_back(pair, header);
    CollectiveOperation* const operation = context.collectives.find(header.operation);
    if (operation == nullptr) return came_late(pair, header);
    const auto step = accept(*operation, pair, header);
    if (!step) return;
    take(*operation, *step, payload);
    pump(*operation);
}

void CollectiveRunner::arrived(Pair& pair, CollectiveIn& in) {
    const Context& context = *pair.context;
    if (!context.collectives.is_called(in.header.operation)) {
        if (EarlyOperation* known = early(pair, in.header.operation)) {
            in.early = true;
            known->messages.push_back({.pair = &pair, .header = in.header, .stream = &in});
        } else {
            drop(in);
        }
        return;
    }
    give_back(pair, in.header);
    CollectiveOperation* const operation = context.collectives.find(in.header.operation);
    if (operation == nullptr) {
        came_late(pair, in.header);
        return drop(in);
    }
    const auto step = accept(*operation, pair, in.header);
    if (!step) return drop(in);
    take(*operation, *step, in);
    pump(*operation);
}

/// Returns the step that receives a message. nullopt: the operation does not expect the message,
/// and fails or has failed.
std::optional<std::uint32_t> CollectiveRunner::accept(CollectiveOperation& operation, Pair& pair,
                                                      const wire::CollectiveHeader& header) {
    if (operation.failure || operation.differs) return std::nullopt;
    if (header.fingerprint != operation.terms.fingerprint) {
        differ(operation, pair);
        return std::nullopt;
    }
    const auto step = operation.plan->receive(pair.rank.value(), header.message);
    const std::uint64_t wanted = step ? operation.plan->ready(*step).bytes : 0;
    if (step && wanted == header.size && !operation.steps[*step].arrived) return step;
    // With equal fingerprints, only counts that just two ranks know can differ.
    if (!operation.terms.has_counts) {
        pair.peer->transfers.cut_off(
            Error(Errc::protocol_violation,
                  fmt::format("the peer sent message {} of {} #{}, which does not exist",
                              header.message, schedule::name(operation.terms.what),
                              operation.context->collectives.shown(operation.number))));
        return std::nullopt;
    }
    fail(operation, unfit(operation.terms, operation.context->collectives.shown(operation.number),
                          {.sender = pair.rank,
                           .sends = header.size,
                           .receiver = operation.context->me,
                           .expects = wanted})
                        .within({.rank = public_rank(pair.rank)}));
    return std::nullopt;
}

/// Called for a message whose operation has ended. That is normal after a failure, but an operation
/// that succeeded had all its messages, so the sender called something else.
void CollectiveRunner::came_late(Pair& pair, const wire::CollectiveHeader& header) {
    const Context& context = *pair.context;
    const PastCollective* const past = pair.context->collectives.past_call(header.operation);
    if (past == nullptr || !past->ended_well) return;
    const bool differs = header.fingerprint != past->terms.fingerprint;
    if (!differs && knows_all_counts(past->terms)) return;
    if (const auto may = may_answer(pair); !may) return pair.peer->transfers.cut_off(may.error());
    if (differs) {
        NEXAR_LOG_WARNING(
            "rank {} received a message from rank {} for collective #{}, which had ended here "
            "as {}; that rank called a different collective",
            context.me.value(), pair.rank.value(), context.collectives.shown(header.operation),
            schedule::name(past->terms.what));
        return say(pair, wire::CollectiveMismatch{.context = context.id,
                                                  .operation = header.operation,
                                                  .description = description_of(past->terms)});
    }
    const Error error =
        unfit(past->terms, context.collectives.shown(header.operation),
              {.sender = pair.rank, .sends = header.size, .receiver = context.me, .expects = 0});
    NEXAR_LOG_WARNING("{}", error.cause());
    say(pair, abort_of(context, header.operation, error));
}

void CollectiveRunner::take(CollectiveOperation& operation, std::uint32_t step,
                            port::ConstBytes payload) {
    StepState& state = operation.steps[step];
    state.arrived = true;
    if (state.waits == 0 && allowed(operation, step) == payload.size()) {
        land_whole(operation, step, payload);
    } else {
        state.kept.assign(payload.begin(), payload.end());
    }
}

void CollectiveRunner::take(CollectiveOperation& operation, std::uint32_t step, CollectiveIn& in) {
    in.step = step;
    in.operation = &operation;
    StepState& state = operation.steps[in.step];
    state.arrived = true;
    state.in = &in;
    ++operation.links;
    if (in.given_up) gave_up(operation, in.pair->rank);
    look_at(operation, in.step);
}

Awaited CollectiveRunner::look_up(Peer& peer, const TransferName& name) {
    const auto found = peer.pairs.find(name.context);
    if (found == peer.pairs.end() || found->second->context == nullptr || is_over(*found->second)) {
        return {.state = Awaited::State::over};  // the communicator has ended
    }
    const PairCollectives* const here = found->second->collectives.get();
    if (here == nullptr || Sequence(name.number) >= here->next_in) {
        return {.state = Awaited::State::not_yet};
    }
    const auto in = here->streams.find(name.number);
    if (in == here->streams.end()) return {.state = Awaited::State::over};
    return {.state = Awaited::State::known, .receiver = in->second.get()};
}

void CollectiveIn::attached() {
    runner->attached(*this);
}

void CollectiveIn::finished(std::uint64_t came) {
    runner->finished(*this, came);
}

void CollectiveIn::aborted() {
    runner->aborted(*this);
}

void CollectiveRunner::attached(CollectiveIn& in) {
    if (in.operation == nullptr) return;
    look_at(*in.operation, in.step);
    pump(*in.operation);
}

/// Discards a message that is no longer needed, and destroys `in`.
void CollectiveRunner::drop(CollectiveIn& in) {
    if (in.operation != nullptr) {
        in.operation->steps[in.step].in = nullptr;
        NEXAR_ASSERT(in.operation->links > 0);
        --in.operation->links;
    }
    // If the message had arrived completely, it must not look refused to its sender.
    if (in.complete && in.stream != nullptr) in.stream->ignore();
    in.reject();
    in.pair->collectives->streams.erase(in.header.sequence.value());
}

void CollectiveRunner::finished(CollectiveIn& in, std::uint64_t came) {
    in.pair->peer->transfers.check_whole(in.bytes, came);
    // Its step finished with its last byte, or the operation failed and refused it. Otherwise the
    // peer violates the protocol, and the operation that waits for the message ends with the link.
    CollectiveOperation* const operation = in.operation;
    if (in.early || (operation != nullptr && !operation->failure)) return;
    drop(in);
    if (operation != nullptr) conclude(*operation);
}

void CollectiveRunner::aborted(CollectiveIn& in) {
    if (in.early) {
        in.given_up = true;
        return;
    }
    CollectiveOperation* const operation = in.operation;
    const Rank from = in.pair->rank;
    drop(in);
    if (operation == nullptr) return;
    gave_up(*operation, from);
    conclude(*operation);
}

}  // namespace nexar::engine
