#include "engine/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "base/try.hpp"
#include "engine/engine.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

/// The rpc lane of a peer: frames, and the small payloads behind them.
class Calls::Taker final : public LaneReader::Taker {
public:
    Taker(Calls& calls, Peer& peer) noexcept : calls_(&calls), peer_(&peer) {}

    Result<std::uint64_t> frame(const wire::FrameHeader& header, port::ConstBytes body) override {
        if (peer_->violation) return std::uint64_t{0};
        return calls_->on_frame(*peer_, header, body);
    }

    port::Bytes payload_place(std::size_t /*bytes*/) override {
        PeerCalls::Payload& payload = peer_->calls.payload;
        if (payload.part == wire::CallPart::none) return {};
        return port::Bytes(payload.bytes).subspan(payload.came);
    }

    void payload_came(std::size_t bytes) override {
        PeerCalls::Payload& payload = peer_->calls.payload;
        if (payload.part == wire::CallPart::none) return;
        payload.came += bytes;
        if (payload.came == payload.bytes.size()) calls_->payload_came(*peer_);
    }

    void violated(const Error& error) override { calls_->host_->violated(*peer_, error); }

private:
    Calls* calls_;
    Peer* peer_;
};

std::unique_ptr<LaneReader::Taker> Calls::make_taker(Peer& peer) {
    return std::make_unique<Taker>(*this, peer);
}

void Calls::advance(TimePoint now) {
    now_ = std::max(now, now_);
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

void Calls::send_frame(Peer& peer, std::vector<std::byte> frame) {
    if (peer.link == nullptr || peer.violation) return;
    PeerCalls& calls = peer.calls;
    const port::ConstBytes piece(frame);
    if (!calls.full && peer.link->write(port::Lane::rpc, {&piece, 1})) return;
    calls.full = true;
    calls.held += frame.size();
    calls.backlog.push_back(std::move(frame));
    if (calls.backlog.size() > limits_.max_backlog) {
        host_->violated(peer, Error(Errc::limit_exceeded, "it does not read what it is answered"));
    }
}

template <class Message>
void Calls::say(Peer& peer, const Message& message) {
    std::vector<std::byte> frame(wire::encoded_size(message));
    const auto size = wire::encode(message, std::span(frame));
    NEXAR_ASSERT(size.has_value() && *size == frame.size());
    send_frame(peer, std::move(frame));
}

template void Calls::say(Peer&, const wire::Response&);
template void Calls::say(Peer&, const wire::Cancel&);

void Calls::flush(Peer& peer) {
    PeerCalls& calls = peer.calls;
    while (!calls.backlog.empty()) {
        const port::ConstBytes piece(calls.backlog.front());
        if (!peer.link->write(port::Lane::rpc, {&piece, 1})) return;
        calls.held -= piece.size();
        calls.backlog.pop_front();
    }
    calls.full = false;
}

void Calls::writable(Peer& peer) {
    flush(peer);
    drain(peer);
}

void Calls::drain(Peer& peer) {
    const PeerCalls& calls = peer.calls;
    while (CallOperation* call = calls.waiting.first()) {
        if (peer.link == nullptr || peer.violation || calls.full) return;
        if (!write_request(peer, *call)) return;
    }
}

Result<std::uint64_t> Calls::on_frame(Peer& peer, const wire::FrameHeader& header,
                                      port::ConstBytes body) {
    peer.calls.payload = {};
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
                return Error(Errc::protocol_violation, "it cancelled a call that it never made");
            }
            on_cancel(peer, cancel.message.call.value());
            return std::uint64_t{0};
        }
        default:
            return Error(
                Errc::protocol_violation,
                fmt::format("a frame of type {} came where none is due", wire::name(header.type)));
    }
}

/// The payload behind a frame is whole. Who wanted it may have given up meanwhile.
void Calls::payload_came(Peer& peer) {
    PeerCalls::Payload payload = std::exchange(peer.calls.payload, {});
    if (payload.part == wire::CallPart::request) {
        const auto found = peer.calls.in.find(payload.call);
        if (found == peer.calls.in.end()) return;
        found->second->argument = std::move(payload.bytes);
        ready(*found->second);
        return;
    }
    const auto found = peer.calls.sent.find(payload.call);
    if (found == peer.calls.sent.end()) return;
    found->second->response = std::move(payload.bytes);
    end(*found->second, std::nullopt);
}

void Calls::attach(CallPayload& payload, InBulk& stream) {
    payload.stream = &stream;
    stream.call_payload = &payload;
    // Memory is touched as bytes come, so a peer that only announces takes none.
    payload.bytes.reserve(static_cast<std::size_t>(payload.size));
    port::Link& link = *stream.peer().link;
    link.open_window(stream.id());
    link.wake_sink(stream.id());
}

/// Nobody wants it any more.
void Calls::detach(CallPayload& payload) {
    InBulk* stream = std::exchange(payload.stream, nullptr);
    if (stream == nullptr) return;
    stream->call_payload = nullptr;
    if (!std::exchange(stream->refused, true) && stream->peer().link != nullptr) {
        stream->peer().link->refuse(stream->id());
    }
}

void Calls::named(InBulk& stream, const wire::Preamble& preamble) {
    stream.of_call = true;
    Peer& peer = stream.peer();
    const std::uint64_t id = preamble.call.value();
    const auto taken = preamble.part == wire::CallPart::request ? named_request(peer, stream, id)
                                                                : named_response(peer, stream, id);
    if (taken) return;
    host_->violated(peer, taken.error());
    if (!std::exchange(stream.refused, true)) peer.link->refuse(stream.id());
}

namespace {

/// The payload that it carried, if anybody still wants it; the stream is gone.
CallPayload* forget_call_stream(Peer& peer, InBulk& stream) {
    CallPayload* payload = stream.call_payload;
    if (payload != nullptr) payload->stream = nullptr;
    if (stream.early) {
        std::erase_if(peer.calls.early, [&](const auto& entry) { return entry.second == &stream; });
    }
    peer.streams_in.erase(stream.id().value());
    return payload;
}

InBulk* of_call(Peer& peer, port::StreamId id) {
    const auto found = peer.streams_in.find(id.value());
    return found != peer.streams_in.end() && found->second->of_call ? found->second.get() : nullptr;
}

}  // namespace

bool Calls::finished(Peer& peer, const port::Finished& finished) {
    InBulk* stream = of_call(peer, finished.stream);
    if (stream == nullptr) return false;
    const bool wanted = !stream->refused;
    CallPayload* payload = forget_call_stream(peer, *stream);
    if (payload == nullptr) {
        if (wanted) {
            host_->violated(
                peer, Error(Errc::protocol_violation, "a payload of a call ended without a call"));
        }
        return true;
    }
    if (!payload->known) {
        host_->violated(peer, Error(Errc::protocol_violation,
                                    "a payload of a call ended before its frame came"));
    } else if (payload->bytes.size() != payload->size) {
        host_->violated(peer, Error(Errc::protocol_violation,
                                    fmt::format("a payload of {} bytes ended after {}",
                                                payload->size, payload->bytes.size())));
    } else if (InCall* call = payload->request; call != nullptr) {
        call->argument = std::move(payload->bytes);
        ready(*call);
    } else {
        payload->response->response = std::move(payload->bytes);
        end(*payload->response, std::nullopt);
    }
    return true;
}

bool Calls::aborted(Peer& peer, port::StreamId id) {
    InBulk* stream = of_call(peer, id);
    if (stream == nullptr) return false;
    CallPayload* payload = forget_call_stream(peer, *stream);
    if (payload == nullptr) return true;
    if (InCall* call = payload->request; call != nullptr) {
        stop(*call, Error(Errc::cancelled, "the caller gave the call up"));
    } else if (!peer.violation) {
        give_up(*payload->response,
                Error(Errc::outcome_unknown, "the answer of the function was given up on its way"));
    }
    return true;
}

bool Calls::released(Peer& peer, const port::Released& released) {
    PeerCalls& calls = peer.calls;
    if (const auto out = calls.requests_out.find(released.stream.value());
        out != calls.requests_out.end()) {
        CallOperation& call = *out->second;
        calls.requests_out.erase(out);
        call.streaming = false;
        if (call.state == CallOperation::State::ended) host_->finish(call);
        return true;
    }
    const auto out = calls.responses_out.find(released.stream.value());
    if (out == calls.responses_out.end()) return false;
    InCall& call = *out->second;
    calls.responses_out.erase(out);
    destroy(call);
    return true;
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
        stop(call, Error(Errc::unknown_function, "the function is not served any more"));
    });
}

void Calls::down(Peer& peer, const Error& reason) {
    PeerCalls& calls = peer.calls;
    NEXAR_ASSERT(calls.requests_out.empty() && calls.responses_out.empty(),
                 "a link that goes down releases everything first");
    calls.backlog.clear();
    calls.owed.clear();
    calls.early.clear();
    calls.payload = {};
    const bool stopped = reason.code() == Errc::closed;
    while (CallOperation* call = calls.waiting.first()) {
        end(*call, stopped ? reason
                           : Error(Errc::link_closed,
                                   fmt::format("the link to the peer is down, and the request was "
                                               "not sent: {}",
                                               reason.cause())));
    }
    while (!calls.sent.empty()) {
        CallOperation& call = *calls.sent.begin()->second;
        if (call.incoming.stream != nullptr) call.incoming.stream->call_payload = nullptr;
        call.incoming.stream = nullptr;
        end(call, stopped ? reason
                          : Error(Errc::outcome_unknown,
                                  fmt::format("the link to the peer went down after the request "
                                              "was sent, so the function may have run or not; it "
                                              "is not called again: {}",
                                              reason.cause())));
    }
    std::vector<InCall*> in;
    in.reserve(calls.in.size());
    for (const auto& [id, call] : calls.in) in.push_back(call.get());
    for (InCall* call : in) {
        if (call->incoming.stream != nullptr) call->incoming.stream->call_payload = nullptr;
        call->incoming.stream = nullptr;
        stop(*call, reason);
    }
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
    const Error closing(Errc::link_closed, "the node closes, and did not call the function");
    for_each_in([&](InCall& call) {
        if (call.local != nullptr) {
            stop(call, Error(Errc::closed, "the node was closed"));
        } else if (call.state < InCall::State::running) {
            stop(call, closing);
        } else if (call.state == InCall::State::running) {
            // Its caller learns by the end of the link that the outcome is not known.
            call.answered = true;
            stop(call, closing);
        }
    });
}

}  // namespace nexar::engine
