// Collectives, as the engine's operations.

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
}

void Engine::cancel(CollectiveOperation& collective) {
    collectives_.cancel(collective);
}

void Engine::advance(TimePoint now) {
    calls_.advance(now);
    collectives_.advance(now);
}

std::optional<TimePoint> Engine::next_deadline() const noexcept {
    const auto calls = calls_.next_deadline();
    const auto collectives = collectives_.next_deadline();
    if (!calls || !collectives) return calls ? calls : collectives;
    return std::min(*calls, *collectives);
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
    refuse(stream);
}

}  // namespace nexar::engine
