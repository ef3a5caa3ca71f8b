#include "engine/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

void Calls::advance(TimePoint now) {
    now_ = std::max(now, now_);
    services_->recording().advance(now_);
    expire_out(now_);
    expire_in(now_);
}

std::optional<TimePoint> Calls::next_deadline() const noexcept {
    std::optional<TimePoint> first;
    if (!due_out_.empty()) first = due_out_.begin()->first;
    if (!due_in_.empty() && (!first || due_in_.begin()->first < *first)) {
        first = due_in_.begin()->first;
    }
    return first;
}

void Calls::drain(Peer& peer) {
    while (CallOperation* call = peer.calls.waiting.first()) {
        if (!peer.transfers.usable() || !write_request(peer, *call)) return;
    }
}

Result<LanePayload> Calls::on_frame(Peer& peer, const wire::FrameHeader& header,
                                    port::ConstBytes body) {
    switch (header.type) {
        case wire::FrameType::request: {
            NEXAR_TRY_VALUE(request, wire::decode_body<wire::Request>(header, body));
            return on_request(peer, request.message);
        }
        case wire::FrameType::response: {
            NEXAR_TRY_VALUE(response, wire::decode_body<wire::Response>(header, body));
            return on_response(peer, response.message);
        }
        case wire::FrameType::cancel: {
            NEXAR_TRY_VALUE(cancel, wire::decode_body<wire::Cancel>(header, body));
            if (cancel.message.call.value() >= peer.calls.next_in) {
                return Error(Errc::protocol_violation,
                             "the peer cancelled a call that it never made");
            }
            on_cancel(peer, cancel.message.call.value());
            return LanePayload{};
        }
        default:
            return Error(Errc::protocol_violation,
                         fmt::format("the peer sent a frame of type {} where it is not allowed",
                                     wire::name(header.type)));
    }
}

/// Called when the frame of a payload arrives; the payload follows on the lane or on a stream.
LanePayload Calls::expect(Peer& peer, CallPayload& payload, std::uint64_t bytes,
                          wire::PayloadPlace place, const TransferName& name) {
    payload.bytes = bytes;
    payload.on_stream = place == wire::PayloadPlace::stream;
    if (!payload.on_stream) {
        payload.content.reserve(static_cast<std::size_t>(bytes));
        return {.bytes = bytes, .receiver = &payload};
    }
    if (payload.stream != nullptr) {
        payload.attached();  // the stream was waiting for this frame
    } else {
        peer.transfers.expect(name, payload);
    }
    return {};
}

/// Discards a payload that is no longer needed.
void Calls::detach(Peer* peer, CallPayload& payload) {
    payload.reject();
    if (peer != nullptr) peer->transfers.skip(port::Lane::rpc, payload);
}

Result<Awaited> Calls::look_up(Peer& peer, const TransferName& name) {
    PeerCalls& calls = peer.calls;
    if (name.kind == TransferKind::request) {
        if (name.number >= calls.next_in) return Awaited{.state = Awaited::State::not_yet};
        const auto found = calls.in.find(name.number);
        // Any other call was answered already.
        if (found == calls.in.end() || found->second->state != InCall::State::arriving ||
            !found->second->incoming.on_stream) {
            return Awaited{.state = Awaited::State::over};
        }
        return Awaited{.state = Awaited::State::known, .receiver = &found->second->incoming};
    }
    const auto found = calls.sent.find(name.number);
    if (found == calls.sent.end()) {
        if (name.number >= calls.next_out) {
            return Error(Errc::protocol_violation, "the peer answered a call that was never made");
        }
        return Awaited{.state = Awaited::State::over};  // the caller abandoned the call
    }
    CallOperation& call = *found->second;
    if (call.header_came && !call.incoming.on_stream) return PeerTransfers::sent_twice(name.kind);
    return Awaited{.state = Awaited::State::known, .receiver = &call.incoming};
}

std::size_t CallPayload::write(std::uint64_t /*offset*/, port::ConstBytes from) noexcept {
    if (bytes == kUnknownBytes) return 0;
    content.insert(content.end(), from.begin(), from.end());
    return from.size();
}

void CallPayload::attached() {
    if (bytes == kUnknownBytes) return;
    // Memory is touched only as bytes arrive, so announcing a payload without sending it uses none.
    content.reserve(static_cast<std::size_t>(bytes));
    stream->open();
}

void CallPayload::finished(std::uint64_t /*came*/) {
    calls->finished(*this);
}

void CallPayload::aborted() {
    calls->aborted(*this);
}

void Calls::finished(CallPayload& payload) {
    InCall* const call = payload.request;
    PeerTransfers& transfers = (call != nullptr ? call->peer : payload.response->peer)->transfers;
    if (payload.bytes == kUnknownBytes) {
        transfers.cut_off(Error(Errc::protocol_violation,
                                "the peer ended the payload of a call before it sent the header"));
    } else if (payload.content.size() != payload.bytes) {
        transfers.check_whole(payload.bytes, payload.content.size());
    } else if (call != nullptr) {
        call->argument = std::move(payload.content);
        ready(*call);
    } else {
        payload.response->response = std::move(payload.content);
        end(*payload.response, std::nullopt);
    }
}

void Calls::aborted(CallPayload& payload) {
    if (payload.request != nullptr) {
        stop(*payload.request, Error(Errc::cancelled, "the caller abandoned the call"));
    } else if (!payload.response->peer->transfers.violation()) {
        give_up(*payload.response,
                Error(Errc::outcome_unknown, "the peer abandoned the answer while sending it"));
    }
}

template <class Visit>
void Calls::for_each_in(Visit visit) {
    std::vector<InCall*> all;
    all.reserve(self_.in.size());
    for (const auto& [id, call] : self_.in) all.push_back(call.get());
    for (const auto& peer : *peers_) {
        for (const auto& [id, call] : peer->calls.in) all.push_back(call.get());
    }
    for (InCall* call : all) visit(*call);
}

void Calls::remove(Function& function) {
    if (function.name.empty()) {
        by_number_.erase(function.number);
    } else {
        by_name_.erase(function.name);
    }
    for_each_in([&](InCall& call) {
        if (call.function != &function || call.state >= InCall::State::running) return;
        stop(call, Error(Errc::unknown_function, "the function is no longer served"));
    });
}

namespace {

/// The error of a call whose request was sent. A node that is closed does not care.
Error after_request(const Error& reason) {
    if (reason.code() == Errc::closed) return reason;
    return {reason.code(),
            fmt::format("{}; the request was sent, so the function may or may not have run",
                        reason.cause()),
            {.rank = reason.rank(), .host = reason.host()}};
}

}  // namespace

void Calls::down(Peer& peer, const Error& reason) {
    PeerCalls& calls = peer.calls;
    calls.owed.clear();
    const bool stopped = reason.code() == Errc::closed || remedy(reason.code()) == Remedy::recover;
    while (CallOperation* call = calls.waiting.first()) {
        end(*call, stopped ? reason
                           : Error(Errc::link_closed,
                                   fmt::format("the link to the peer is down, and the request was "
                                               "not sent: {}",
                                               reason.cause())));
    }
    while (!calls.sent.empty()) {
        end(*calls.sent.begin()->second,
            stopped ? after_request(reason)
                    : Error(Errc::outcome_unknown,
                            fmt::format("the link to the peer went down after the request "
                                        "was sent, so the function may or may not have run; "
                                        "the call is not repeated: {}",
                                        reason.cause())));
    }
    std::vector<InCall*> in;
    in.reserve(calls.in.size());
    for (const auto& [id, call] : calls.in) in.push_back(call.get());
    for (InCall* call : in) stop(*call, reason);
}

void Calls::halt(Peer& peer, const Error& reason) {
    PeerCalls& calls = peer.calls;
    while (CallOperation* call = calls.waiting.first()) end(*call, reason);
    while (!calls.sent.empty()) give_up(*calls.sent.begin()->second, after_request(reason));
}

void Calls::halt(const Error& reason) {
    for (const auto& peer : *peers_) halt(*peer, reason);
    for_each_in([&](InCall& call) {
        if (call.local != nullptr) stop(call, reason);
    });
}

void Calls::abort(const Error& reason) {
    aborted_ = true;
    for (const auto& peer : *peers_) {
        PeerCalls& calls = peer->calls;
        while (CallOperation* call = calls.waiting.first()) end(*call, reason);
        while (!calls.sent.empty()) give_up(*calls.sent.begin()->second, reason);
    }
    for_each_in([&](InCall& call) {
        if (call.local == nullptr) call.answered = true;
        stop(call, reason);
    });
}

void Calls::close() {
    closing_ = true;
    const Error closing(Errc::link_closed, "the node is closing and did not call the function");
    for_each_in([&](InCall& call) {
        if (call.local != nullptr) {
            stop(call, Error(Errc::closed, "the node was closed"));
        } else if (call.state < InCall::State::running) {
            stop(call, closing);
        } else if (call.state == InCall::State::running) {
            // When the link goes down, the caller learns that the outcome is unknown.
            call.answered = true;
            stop(call, closing);
        }
    });
}

}  // namespace nexar::engine
