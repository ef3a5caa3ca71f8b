// Aborting the program: ends every operation of this node and tells all members.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/assert.hpp"
#include "base/log.hpp"
#include "base/printable.hpp"
#include "engine/abort_error.hpp"
#include "engine/engine.hpp"

namespace nexar::engine {

Error error_of(const wire::Abort& abort) {
    return {Errc::aborted,
            fmt::format("rank {} aborted the program with code {}{}{}", abort.rank.value(),
                        abort.code, abort.text.empty() ? "" : ": ", abort.text),
            {.rank = public_rank(abort.rank), .abort_code = abort.code}};
}

bool Engine::abort(std::int32_t code, std::string_view why) {
    const auto own = calls_.own_rank();
    NEXAR_ASSERT(own.has_value(), "set_world() or set_own_rank() must precede abort()");
    if (abort_) return false;
    for (const auto& peer : peers_) {
        if (!peer->lost) want(*peer);
    }
    end_all({.code = code,
             .rank = own.value_or(Rank(0)),
             .text = printable(why, wire::kMaxReportTextBytes)},
            nullptr);
    return true;
}

Result<void> Engine::hear_abort(const wire::Abort& abort, const Peer* from) {
    const Context* const world = calls_.world();
    const std::size_t known = world == nullptr ? 0 : world->pairs.size();
    const std::size_t ranks = std::max<std::size_t>(known, view_.next_rank.value());
    if (abort.rank.value() >= ranks) {
        return Error(
            Errc::protocol_violation,
            fmt::format("the peer says that rank {} aborted the program; there are {} ranks",
                        abort.rank.value(), ranks));
    }
    if (abort_) return {};  // only the first abort counts
    if (abort.rank == calls_.own_rank()) {
        return Error(Errc::protocol_violation,
                     "the peer says that this rank aborted the program, but it did not");
    }
    NEXAR_LOG_INFO("{}", error_of(abort).cause());
    end_all(abort, from);
    return {};
}

/// Tells peers before it cancels the streams to them: they must know why.
void Engine::end_all(const wire::Abort& abort, const Peer* from) {
    const Error reason = error_of(abort);
    abort_ = abort;
    aborted_ = reason;
    for (const auto& peer : peers_) {
        if (peer.get() != from) peer->transfers.say_message(port::Lane::control, abort);
    }
    for (const auto& [id, context] : contexts_) messages_.abort(*context, reason);
    messages_.abort_local(reason);
    for (const auto& peer : peers_) messages_.abort(*peer, reason);
    calls_.abort(reason);
    agreements_.end_all(reason);
    for (const auto& [id, context] : contexts_) collectives_.abort(*context, reason);
    transfers_.offer_rests();
}

bool Engine::abort_told() const noexcept {
    return std::ranges::all_of(peers_, [](const auto& peer) {
        return peer->lost || peer->transfers.over() ||
               (peer->transfers.up() && peer->transfers.backlog(port::Lane::control) == 0);
    });
}

}  // namespace nexar::engine
