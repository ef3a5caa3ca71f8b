// How a program is aborted: everything that is under way ends here, and all members hear of it.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "engine/engine.hpp"

namespace nexar::engine {

Error error_of(const wire::Abort& abort) {
    return {Errc::aborted,
            fmt::format("rank {} aborted the program with code {}{}{}", abort.rank.value(),
                        abort.code, abort.text.empty() ? "" : ": ", abort.text),
            {.rank = public_rank(abort.rank), .abort_code = abort.code}};
}

bool Engine::abort(std::int32_t code, std::string_view why) {
    const Context* const world = calls_.world();
    NEXAR_ASSERT(world != nullptr, "a world is there before anybody can abort it");
    if (abort_) return false;
    for (const auto& peer : peers_) {
        if (!peer->lost) want(*peer);
    }
    end_all({.code = code, .rank = world->me, .text = printable(why, wire::kMaxReportTextBytes)},
            nullptr);
    return true;
}

Result<void> Engine::hear_abort(const wire::Abort& abort, const Peer* from) {
    const Context* const world = calls_.world();
    if (world == nullptr || abort.rank.value() >= world->pairs.size()) {
        return Error(Errc::protocol_violation,
                     fmt::format("it says that rank {} aborted the program, in a world of {}",
                                 abort.rank.value(), world == nullptr ? 0 : world->pairs.size()));
    }
    if (abort_) return {};  // the first one counts
    if (abort.rank == world->me) {
        return Error(Errc::protocol_violation,
                     "it says that this rank aborted the program, which it did not");
    }
    NEXAR_LOG_INFO("{}", error_of(abort).cause());
    end_all(abort, from);
    return {};
}

/// Peers hear of it before the streams to them are given up, so that they know why.
void Engine::end_all(const wire::Abort& abort, const Peer* from) {
    const Error reason = error_of(abort);
    abort_ = abort;
    aborted_ = reason;
    for (const auto& peer : peers_) {
        if (peer.get() != from) send_control(*peer, abort);
    }
    for (const auto& [id, context] : contexts_) {
        for (PostedReceive* const posted : context->matcher.all_posted()) {
            context->matcher.remove(*posted);
            fail(static_cast<ReceiveOperation&>(*posted), reason.within({.operation = "receive"}));
        }
        while (ProbeOperation* probe = context->probes.pop_front()) {
            fail(*probe, reason.within({.operation = "probe"}));
        }
    }
    while (SendOperation* send = locals_.first()) {
        cancel_local(*send, reason.within({.operation = "send"}));
    }
    for (const auto& peer : peers_) {
        end_sends_to(*peer, reason);
        end_receives_from(*peer, reason);
    }
    calls_.abort(reason);
    for (const auto& [id, context] : contexts_) collectives_.abort(*context, reason);
    offer_rests();
}

void Engine::end_sends_to(Peer& peer, const Error& reason) {
    const auto end = [&](SendOperation& send) {
        send.state = SendOperation::State::ended;
        fail(send, reason.within({.operation = "send"}));
    };
    for (const auto& [id, pair] : peer.pairs) {
        while (SendOperation* send = pair->waiting.pop_front()) end(*send);
    }
    // A grant that still comes for one of them is late, and allowed.
    for (const auto& [name, send] : peer.announced) end(*send);
    peer.announced.clear();
    for (auto& [name, send] : peer.asking) {
        if (send != nullptr) end(*std::exchange(send, nullptr));
    }
    for (const auto& [stream, send] : peer.streams_out) {
        if (!std::exchange(send->cancelling, true) && peer.link != nullptr) {
            peer.link->cancel(send->stream);  // ends when it is released
        }
    }
}

/// Those that are matched, while their message arrives.
void Engine::end_receives_from(Peer& peer, const Error& reason) {
    for (InMessage* message = peer.incomplete.first(); message != nullptr;) {
        InMessage& arriving = *message;
        message = decltype(peer.incomplete)::after(arriving);
        if (arriving.receiver != nullptr) {
            let_go(*arriving.receiver, reason.within({.operation = "receive"}));
        }
    }
}

bool Engine::abort_told() const noexcept {
    return std::ranges::all_of(peers_, [](const auto& peer) {
        return peer->lost || (peer->link != nullptr && peer->control_backlog.empty());
    });
}

}  // namespace nexar::engine
