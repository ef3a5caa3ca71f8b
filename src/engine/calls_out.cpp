// Calls that this node makes.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "engine/calls.hpp"
#include "engine/engine.hpp"
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
    call.streaming = false;
    call.header_came = false;
    call.incoming = {};
    call.incoming.response = &call;
    call.response.clear();
    if (call.to != context.me) {
        NEXAR_ASSERT(call.to.value() < context.pairs.size());
        call.peer = context.pairs[call.to.value()]->peer;
        call.peer->calls.waiting.push_back(call);
    }
    if (call.deadline) due_out_.emplace_hint(due_out_.end(), *call.deadline, &call);
    if (call.content.size() > limits_.max_request) {
        return end(call,
                   Error(Errc::limit_exceeded,
                         fmt::format("a request of {} bytes is larger than max_request, {}; send "
                                     "it in pieces, or raise the limit on both sides",
                                     call.content.size(), limits_.max_request)));
    }
    if (call.deadline && *call.deadline <= now_) return end(call, too_late(call));
    if (call.peer == nullptr) return start_local(call, context);
    if (call.peer->lost) {
        return end(call, Error(Errc::link_closed, fmt::format("the link to the peer is down: {}",
                                                              call.peer->lost->cause())));
    }
    host_->want(*call.peer);
    drain(*call.peer);
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
    std::array<std::byte, wire::kMaxCallFrameBytes> frame{};
    const auto size = wire::encode(request, std::span(frame));
    NEXAR_ASSERT(size.has_value());
    const std::array<port::ConstBytes, 2> pieces{std::span(frame).first(*size), call.content};
    if (!peer.link->write(port::Lane::rpc, std::span(pieces).first(on_lane ? 2 : 1))) {
        calls.full = true;
        return false;
    }
    calls.waiting.erase(call);
    call.id = calls.next_out++;
    call.state = CallOperation::State::sent;
    calls.sent.emplace(call.id, &call);
    if (on_lane) return true;
    std::array<std::byte, wire::kBulkPreambleBytes> preamble{};
    const auto written = wire::encode(
        wire::Preamble{
            .lane = wire::Lane::call, .call = request.call, .part = wire::CallPart::request},
        preamble);
    NEXAR_ASSERT(written.has_value() && *written == preamble.size());
    call.streaming = true;
    call.stream = peer.link->send(call, {.prefix = preamble});
    calls.requests_out.emplace(call.stream.value(), &call);
    return true;
}

/// Takes it out of all tables and ends it, when the link does not read its memory any more.
void Calls::end(CallOperation& call, std::optional<Error> error) {
    if (call.state == CallOperation::State::waiting && call.peer != nullptr) {
        call.peer->calls.waiting.erase(call);
    } else if (call.state == CallOperation::State::sent) {
        call.peer->calls.sent.erase(call.id);
        detach(call.incoming);
    }
    if (call.deadline) due_out_.erase({*call.deadline, &call});
    if (call.local != nullptr) call.local->local = nullptr;
    call.local = nullptr;
    call.state = CallOperation::State::ended;
    if (error) {
        call.error = error->within({.rank = public_rank(call.to), .operation = "call"});
        call.response.clear();
    }
    if (!call.streaming) {
        host_->finish(call);
    } else if (call.peer->link != nullptr && error) {
        call.peer->link->cancel(call.stream);
    }
}

/// The caller does not wait any more for what the peer may know of.
void Calls::give_up(CallOperation& call, const Error& reason) {
    if (call.state == CallOperation::State::sent && !call.header_came) {
        Peer& peer = *call.peer;
        peer.calls.owed.insert(call.id);
        say(peer, wire::Cancel{.call = wire::CallId(call.id)});
        if (peer.calls.owed.size() > limits_.max_owed) {
            host_->violated(peer, Error(Errc::limit_exceeded, "it does not answer its calls"));
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

/// Why a payload of this size is no answer to the call, if so.
std::optional<Error> Calls::refusal(const CallOperation& call, std::uint64_t size) const {
    if (size > call.max_response) {
        return Error(Errc::limit_exceeded,
                     fmt::format("the answer has {} bytes, and max_response of the call is {}",
                                 size, call.max_response));
    }
    if (call.single ? size == call.unit : size % call.unit == 0) return std::nullopt;
    return Error(
        Errc::malformed,
        fmt::format("the answer of {} has {} bytes, and the caller expects {}{}; both sides must "
                    "mean the same type",
                    words_for(call.function, call.name), size, call.single ? "" : "a multiple of ",
                    call.unit));
}

Result<std::uint64_t> Calls::on_response(Peer& peer, const wire::Response& response) {
    PeerCalls& calls = peer.calls;
    const std::uint64_t id = response.call.value();
    const bool on_lane = response.place == wire::PayloadPlace::lane;
    const std::uint64_t follows = on_lane ? response.size : 0;
    const auto found = calls.sent.find(id);
    if (found == calls.sent.end()) {
        if (calls.owed.erase(id) != 0) return follows;
        return Error(Errc::protocol_violation,
                     "it answered a call that was not made, or answered it twice");
    }
    CallOperation& call = *found->second;
    if (std::exchange(call.header_came, true)) {
        return Error(Errc::protocol_violation, "it answered one call twice");
    }
    // A stream that came before this frame has told its name.
    if (call.incoming.stream != nullptr && on_lane) {
        return Error(Errc::protocol_violation, "it sent the payload of one answer two ways");
    }
    if (response.code != Errc{}) {
        end(call, Error(response.code, response.text));
        return follows;
    }
    if (const auto refused = refusal(call, response.size)) {
        end(call, refused);
        return follows;
    }
    if (response.size == 0) {
        end(call, std::nullopt);
    } else if (on_lane) {
        calls.payload = {.part = wire::CallPart::response,
                         .call = id,
                         .bytes = std::vector<std::byte>(static_cast<std::size_t>(response.size))};
    } else {
        call.incoming.size = response.size;
        call.incoming.known = true;
        if (call.incoming.stream != nullptr) attach(call.incoming, *call.incoming.stream);
    }
    return follows;
}

Result<void> Calls::named_response(Peer& peer, InBulk& stream, std::uint64_t id) {
    const auto found = peer.calls.sent.find(id);
    if (found == peer.calls.sent.end()) {
        if (id >= peer.calls.next_out) {
            return Error(Errc::protocol_violation, "it sent an answer to a call never made");
        }
        stream.refused = true;  // of a call that was given up
        peer.link->refuse(stream.id());
        return {};
    }
    CallOperation& call = *found->second;
    if (call.incoming.stream != nullptr || (call.header_came && !call.incoming.known)) {
        return Error(Errc::protocol_violation, "it sent the payload of one answer two ways");
    }
    if (call.header_came) {
        attach(call.incoming, stream);
    } else {
        call.incoming.stream = &stream;  // its bytes wait for the frame that says how many they are
        stream.call_payload = &call.incoming;
    }
    return {};
}

}  // namespace nexar::engine
