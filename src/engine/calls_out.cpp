// Calls that this node makes.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "engine/calls.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

namespace {

std::string words_for(std::uint16_t number, std::string_view name) {
    return name.empty() ? fmt::format("function {}", number) : fmt::format("function \"{}\"", name);
}

Error too_late(const CallOperation& call) {
    return {Errc::timed_out,
            fmt::format("{} did not answer in time", words_for(call.function, call.name))};
}

}  // namespace

void Calls::start(Context& context, CallOperation& call) {
    call.state = CallOperation::State::waiting;
    call.peer = nullptr;
    call.local = nullptr;
    call.header_came = false;
    call.incoming.calls = this;
    call.incoming.response = &call;
    call.incoming.bytes = kUnknownBytes;
    call.incoming.streamed = 0;
    call.incoming.on_stream = false;
    call.incoming.content.clear();
    call.response.clear();
    if (call.node) {
        const auto found = std::ranges::find_if(
            *peers_, [&](const auto& peer) { return peer->node == *call.node && !peer->replaced; });
        call.peer = found == peers_->end() ? nullptr : found->get();
    } else if (call.to != context.me) {
        NEXAR_ASSERT(call.to.value() < context.pairs.size());
        call.peer = context.pairs[call.to.value()]->peer;
    }
    if (call.peer != nullptr) call.peer->calls.waiting.push_back(call);
    if (call.deadline) due_out_.emplace_hint(due_out_.end(), *call.deadline, &call);
    if (call.content.size() > limits_.max_request) {
        return end(call,
                   Error(Errc::limit_exceeded,
                         fmt::format("the request has {} bytes, but max_request is {}; send it in "
                                     "pieces, or raise the limit on both sides",
                                     call.content.size(), limits_.max_request)));
    }
    if (call.deadline && *call.deadline <= now_) return end(call, too_late(call));
    if (call.peer == nullptr) return start_local(call, context);
    if (const auto& lost = call.peer->lost) {
        if (remedy(lost->code()) == Remedy::recover) return end(call, lost);
        return end(call, Error(Errc::link_closed,
                               fmt::format("the link to the peer is down: {}", lost->cause())));
    }
    services_->want(*call.peer);
    drain(*call.peer);
    if (call.state == CallOperation::State::waiting) {
        services_->recording().waits(
            call, call.peer->transfers.up() ? WaitReason::room : WaitReason::link);
    }
}

bool Calls::write_request(Peer& peer, CallOperation& call) {
    PeerCalls& calls = peer.calls;
    const bool on_lane = call.content.size() <= eager_limit_;
    const auto left = call.deadline ? std::max(*call.deadline - now_, Duration(1)) : Duration(0);
    const wire::Request request{
        .call = wire::CallId(calls.next_out),
        .time_left = left,
        .function = call.function,
        .name = call.name,
        .size = call.content.size(),
        .place = on_lane ? wire::PayloadPlace::lane : wire::PayloadPlace::stream};
    const std::span<const port::ConstBytes> payload(&call.content, on_lane ? 1 : 0);
    if (!peer.transfers.write_message(port::Lane::rpc, request, payload)) return false;
    calls.waiting.erase(call);
    call.id = calls.next_out++;
    call.state = CallOperation::State::sent;
    calls.sent.emplace(call.id, &call);
    if (!on_lane) {
        peer.transfers.send(call, {.kind = TransferKind::request, .number = call.id},
                            port::Priority::bulk);
    }
    return true;
}

void CallOperation::released(port::SendOutcome /*outcome*/) {
    if (state == State::ended) incoming.calls->services_->finish(*this);
}

/// Removes a call from all tables, and ends it once no link reads its memory.
void Calls::end(CallOperation& call, std::optional<Error> error) {
    if (call.state == CallOperation::State::waiting && call.peer != nullptr) {
        call.peer->calls.waiting.erase(call);
    } else if (call.state == CallOperation::State::sent) {
        call.peer->calls.sent.erase(call.id);
        detach(call.peer, call.incoming);
    }
    if (call.deadline) due_out_.erase({*call.deadline, &call});
    if (call.local != nullptr) call.local->local = nullptr;
    call.local = nullptr;
    call.state = CallOperation::State::ended;
    if (error) {
        call.error = error->within({.rank = public_rank(call.to), .operation = "call"});
        call.response.clear();
    }
    if (!call.sending()) {
        services_->finish(call);
    } else if (error) {
        call.OutStream::cancel();
    }
}

/// Ends a call that the peer may know of, without waiting for its answer.
void Calls::give_up(CallOperation& call, const Error& reason) {
    if (call.state == CallOperation::State::sent && !call.header_came) {
        Peer& peer = *call.peer;
        peer.calls.owed.insert(call.id);
        peer.transfers.say_message(port::Lane::rpc, wire::Cancel{.call = wire::CallId(call.id)});
        if (peer.calls.owed.size() > limits_.max_owed) {
            peer.transfers.cut_off(
                Error(Errc::limit_exceeded, "the peer does not answer calls that were cancelled"));
        }
    } else if (call.state == CallOperation::State::local && call.local != nullptr) {
        // Ends this call as well.
        stop(*call.local, reason);
        return;
    }
    end(call, reason);
}

void Calls::cancel(CallOperation& call) {
    if (!call.active || call.state == CallOperation::State::ended) return;
    give_up(call, Error(Errc::cancelled, "the call was cancelled"));
}

void Calls::expire_out(TimePoint now) {
    while (!due_out_.empty() && due_out_.begin()->first <= now) {
        CallOperation& call = *due_out_.begin()->second;
        give_up(call, too_late(call));
    }
}

/// The error if the answer to the call cannot have this size; nullopt: it can.
std::optional<Error> Calls::refusal(const CallOperation& call, std::uint64_t size) const {
    if (size > call.max_response) {
        return Error(Errc::limit_exceeded,
                     fmt::format("the answer has {} bytes, but max_response of the call is {}",
                                 size, call.max_response));
    }
    if (call.single ? size == call.unit : size % call.unit == 0) return std::nullopt;
    return Error(
        Errc::malformed,
        fmt::format("the answer of {} has {} bytes, but the caller expects {}{}; both sides must "
                    "use the same type",
                    words_for(call.function, call.name), size, call.single ? "" : "a multiple of ",
                    call.unit));
}

Result<LanePayload> Calls::on_response(Peer& peer, const wire::Response& response) {
    PeerCalls& calls = peer.calls;
    const std::uint64_t id = response.call.value();
    const bool on_lane = response.place == wire::PayloadPlace::lane;
    const LanePayload dropped{.bytes = on_lane ? response.size : 0};
    const auto found = calls.sent.find(id);
    if (found == calls.sent.end()) {
        if (calls.owed.erase(id) != 0) return dropped;
        return Error(Errc::protocol_violation,
                     "the peer answered a call that was never made, or answered it twice");
    }
    CallOperation& call = *found->second;
    if (std::exchange(call.header_came, true)) {
        return Error(Errc::protocol_violation, "the peer answered one call twice");
    }
    if (call.incoming.stream != nullptr && on_lane) {
        return PeerTransfers::sent_twice(TransferKind::response);
    }
    if (response.code != Errc{}) {
        end(call, Error(response.code, response.text));
        return dropped;
    }
    if (const auto refused = refusal(call, response.size)) {
        end(call, refused);
        return dropped;
    }
    if (response.size == 0) {
        end(call, std::nullopt);
        return dropped;
    }
    return expect(peer, call.incoming, response.size, response.place,
                  {.kind = TransferKind::response, .number = id});
}

}  // namespace nexar::engine
