// CollectiveRunner, as the engine's operations.

#include "base/try.hpp"
#include "engine/engine.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

void Engine::start(Context& context, CollectiveOperation& collective) {
    if (admit(context, collective)) {
        collectives_.start(context, collective);
    } else if (collective.error) {
        collectives_.pass_over(context, *collective.error);
    }
    offer_rests();
}

void Engine::start(Context& context, CollectiveOperation& counts, CollectiveOperation& collective) {
    start(context, counts);
    if (admit(context, collective)) {
        collectives_.reserve(context, collective);
    } else if (collective.error) {
        collectives_.pass_over(context, *collective.error);
    }
}

void Engine::begin(CollectiveOperation& collective) {
    collectives_.begin(collective);
    offer_rests();
}

void Engine::abandon(CollectiveOperation& collective, const Error& error) {
    collectives_.abandon(collective, error);
    offer_rests();
}

void Engine::cancel(CollectiveOperation& collective) {
    collectives_.cancel(collective);
    offer_rests();
}

Result<std::uint64_t> Engine::on_collective(Peer& peer, const wire::FrameHeader& header,
                                            port::ConstBytes body) {
    const auto pair = [&](ContextId context) { return introduced_pair(peer, context); };
    if (header.type == wire::FrameType::collective_mismatch) {
        NEXAR_TRY_VALUE(mismatch, wire::decode_body<wire::CollectiveMismatch>(header, body));
        NEXAR_TRY_VALUE(found, pair(mismatch.message.context));
        NEXAR_TRY(collectives_.on_mismatch(*found, mismatch.message));
        return std::uint64_t{0};
    }
    if (header.type == wire::FrameType::collective_abort) {
        NEXAR_TRY_VALUE(abort, wire::decode_body<wire::CollectiveAbort>(header, body));
        NEXAR_TRY_VALUE(found, pair(abort.message.context));
        NEXAR_TRY(collectives_.on_abort(*found, abort.message));
        return std::uint64_t{0};
    }
    NEXAR_TRY_VALUE(decoded, wire::decode_body<wire::CollectiveHeader>(header, body));
    NEXAR_TRY_VALUE(found, pair(decoded.message.context));
    return collectives_.on_header(peer, *found, decoded.message);
}

bool Engine::introduce(Pair& pair) {
    return begin_at(pair) && pair.begun_in;
}

void Engine::give_credit(Peer& peer, const wire::Credit& credit) {
    send_control(peer, credit);
}

void Engine::refuse_stream(InBulk& stream) {
    if (stream.rest && !stream.refused) rests_due_.emplace_back(&stream.peer(), stream.id());
    refuse(stream);
}

void Engine::open_stream(InBulk& stream) {
    if (stream.rest) {
        rests_due_.emplace_back(&stream.peer(), stream.id());
    } else if (port::Link* const link = stream.peer().link; link != nullptr) {
        link->open_window(stream.id());
        link->wake_sink(stream.id());
    }
}

/// A message of a collective may wait in the link for its operation, or for a step of it. When it
/// had arrived whole, its sender may have ended its part and left.
void Engine::keep_rests(Peer& peer, const std::vector<port::Rest>& rests) {
    for (const port::Rest& rest : rests) {
        const auto found = peer.streams_in.find(rest.stream.value());
        if (found == peer.streams_in.end() || peer.violation) continue;
        InBulk& stream = *found->second;
        if (stream.collective != nullptr && !stream.refused) stream.rest = rest;
    }
}

/// What the link of a rest would do, after everything else, so that no step is in the middle of
/// something. Called after whatever may let a step go on: calls, events, frames of the eager lane
/// and time. The bytes of a stream need none of it, because Finished follows on the last of them.
void Engine::offer_rests() {
    while (!rests_due_.empty()) {
        const auto [peer, id] = rests_due_.front();
        rests_due_.pop_front();
        const auto found = peer->streams_in.find(id.value());
        if (found == peer->streams_in.end()) continue;
        InBulk& stream = *found->second;
        if (stream.refused) {
            on_aborted(*peer, id);
            continue;
        }
        if (!stream.rest) continue;
        const port::ConstBytes bytes(stream.rest->bytes);
        const std::uint64_t offset = stream.rest->offset;
        stream.rest_taken +=
            stream.write(offset + stream.rest_taken, bytes.subspan(stream.rest_taken));
        if (stream.rest_taken != bytes.size()) continue;
        on_finished(*peer, {.stream = id, .bytes = offset + bytes.size()});
    }
}

}  // namespace nexar::engine
