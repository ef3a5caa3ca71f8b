// Incoming calls of the functions that this node serves.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/assert.hpp"
#include "base/printable.hpp"
#include "engine/calls.hpp"
#include "engine/context.hpp"
#include "engine/peer.hpp"
#include "wire/codec.hpp"

namespace nexar::engine {

namespace {

// Longer than any program runs, and far from the end of the clock.
constexpr Duration kForEver = std::chrono::hours(24 * 365 * 10);

wire::Response response_of(std::uint64_t call, const Error& error) {
    return {.call = wire::CallId(call),
            .code = error.code(),
            .text = printable(error.cause(), wire::kMaxReportTextBytes)};
}

}  // namespace

Result<void> Calls::add(Function& function) {
    const bool added = function.name.empty() ? by_number_.emplace(function.number, &function).second
                                             : by_name_.emplace(function.name, &function).second;
    if (added) return {};
    return Error(Errc::invalid_argument,
                 function.name.empty()
                     ? fmt::format("function {} is served already", function.number)
                     : fmt::format("function \"{}\" is served already", function.name));
}

Function* Calls::find(std::uint16_t number, std::string_view name) const noexcept {
    if (name.empty()) {
        const auto found = by_number_.find(number);
        return found == by_number_.end() ? nullptr : found->second;
    }
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
}

std::optional<Rank> Calls::own_rank() const noexcept {
    if (own_rank_ || world_ == nullptr) return own_rank_;
    return world_->me;
}

std::optional<Rank> Calls::rank_of(Peer& peer) const {
    if (peer.rank) return peer.rank;
    if (!peer.calls.rank && world_ != nullptr) {
        const auto same = [&](const Pair* pair) { return pair != nullptr && pair->peer == &peer; };
        const auto found = std::ranges::find_if(world_->pairs, same);
        if (found != world_->pairs.end()) peer.calls.rank = (*found)->rank;
    }
    return peer.calls.rank;
}

/// The reason to reject a call; nullopt: this node accepts it.
std::optional<Error> Calls::objection(const Peer* peer, Rank caller, std::uint64_t size,
                                      const Function* function) const {
    if (closing_) return Error(Errc::link_closed, "the node is closing");
    if (function == nullptr)
        return Error(Errc::unknown_function, "the callee has no such function");
    if (function->callers &&
        std::ranges::find(*function->callers, caller) == function->callers->end()) {
        return Error(Errc::not_allowed,
                     fmt::format("rank {} may not call this function", caller.value()));
    }
    if (const std::uint64_t most = std::min(limits_.max_request, function->max_request);
        size > most) {
        return Error(Errc::limit_exceeded,
                     fmt::format("the request has {} bytes, but the function accepts at most {}",
                                 size, most));
    }
    const std::size_t unread = peer == nullptr ? 0 : peer->transfers.backlog(port::Lane::rpc);
    if (calls_of(peer).in.size() + unread >= limits_.max_in_flight) {
        return Error(Errc::overloaded,
                     fmt::format("{} calls from this caller are in progress, which is the maximum",
                                 limits_.max_in_flight));
    }
    if (size > limits_.max_held - std::min(limits_.max_held, held(peer))) {
        return Error(
            Errc::overloaded,
            fmt::format(
                "calls from this caller hold {} bytes; try again when some of them are answered",
                held(peer)));
    }
    return std::nullopt;
}

/// Bytes held for a caller: its calls and the answers that it has not read. See
/// CallLimits::max_held.
std::uint64_t Calls::held(const Peer* peer) const noexcept {
    const std::uint64_t unread =
        peer == nullptr ? 0 : peer->transfers.backlog_bytes(port::Lane::rpc);
    return calls_of(peer).held + unread;
}

Result<LanePayload> Calls::on_request(Peer& peer, const wire::Request& request) {
    PeerCalls& calls = peer.calls;
    const std::uint64_t id = request.call.value();
    if (id != calls.next_in) {
        return Error(
            Errc::protocol_violation,
            fmt::format("the peer sent call {}, but call {} was expected", id, calls.next_in));
    }
    ++calls.next_in;
    const bool on_lane = request.place == wire::PayloadPlace::lane;
    const TransferName name{.kind = TransferKind::request, .number = id};
    if (on_lane && peer.transfers.is_early(name)) return PeerTransfers::sent_twice(name.kind);
    const std::optional<Rank> known = rank_of(peer);
    const Rank caller = known.value_or(Rank{});
    Function* function = known ? find(request.function, request.name) : nullptr;
    if (const auto no = objection(&peer, caller, request.size, function); no || aborted_) {
        if (!aborted_) peer.transfers.say_message(port::Lane::rpc, response_of(id, *no));
        peer.transfers.refuse_early(name);
        return LanePayload{.bytes = on_lane ? request.size : 0};
    }
    auto made = std::make_unique<InCall>();
    InCall& call = *made;
    calls.in.emplace(id, std::move(made));
    call.peer = &peer;
    call.id = id;
    call.function = function;
    call.caller = caller;
    call.incoming.calls = this;
    call.incoming.request = &call;
    call.held = request.size;
    calls.held += request.size;
    if (request.time_left.count() != 0 && request.time_left < kForEver) {
        call.deadline = now_ + request.time_left;
        due_in_.emplace_hint(due_in_.end(), *call.deadline, &call);
    }
    if (request.size != 0) return expect(peer, call.incoming, request.size, request.place, name);
    ready(call);
    return LanePayload{};
}

void Calls::ready(InCall& call) {
    NEXAR_ASSERT(call.state == InCall::State::arriving);
    call.state = InCall::State::ready;
    ready_.push_back(call);
}

InCall* Calls::poll_call() noexcept {
    InCall* call = ready_.pop_front();
    if (call != nullptr) call->state = InCall::State::running;
    return call;
}

InCall* Calls::poll_stopped() noexcept {
    InCall* call = stopped_.pop_front();
    if (call != nullptr) call->stopping = false;
    return call;
}

void Calls::on_cancel(Peer& peer, std::uint64_t id) {
    const auto found = peer.calls.in.find(id);
    if (found == peer.calls.in.end()) return;  // it was answered already
    stop(*found->second, Error(Errc::cancelled, "the caller cancelled the call"));
}

void Calls::start_local(CallOperation& call, Context& context) {
    Function* function = find(call.function, call.name);
    const Rank caller = own_rank_.value_or(context.me);
    if (const auto no = objection(nullptr, caller, call.content.size(), function)) {
        return end(call, no);
    }
    auto made = std::make_unique<InCall>();
    InCall& in = *made;
    in.id = self_.next_in++;
    self_.in.emplace(in.id, std::move(made));
    in.incoming.calls = this;
    in.function = function;
    in.caller = caller;
    in.held = call.content.size();
    self_.held += in.held;
    in.argument.assign(call.content.begin(), call.content.end());
    // Not added to due_in_: the deadline of the operation ends both.
    in.deadline = call.deadline;
    in.local = &call;
    call.local = &in;
    call.state = CallOperation::State::local;
    ready(in);
}

/// The calls of a caller; nullptr: this node itself.
const PeerCalls& Calls::calls_of(const Peer* peer) const noexcept {
    return peer == nullptr ? self_ : peer->calls;
}

PeerCalls& Calls::calls_of(const Peer* peer) noexcept {
    return const_cast<PeerCalls&>(std::as_const(*this).calls_of(peer));
}

void InCall::released(port::SendOutcome /*outcome*/) {
    incoming.calls->destroy(*this);
}

void Calls::destroy(InCall& call) {
    if (call.deadline) due_in_.erase({*call.deadline, &call});
    if (call.stopping) stopped_.erase(call);
    detach(call.peer, call.incoming);
    PeerCalls& calls = calls_of(call.peer);
    calls.held -= call.held;
    calls.in.erase(call.id);
}

void Calls::answer(InCall& call, const Error& error) {
    if (std::exchange(call.answered, true)) return;
    if (CallOperation* local = std::exchange(call.local, nullptr); local != nullptr) {
        local->local = nullptr;
        end(*local, error);
    } else if (call.peer != nullptr) {
        call.peer->transfers.say_message(port::Lane::rpc, response_of(call.id, error));
    }
}

void Calls::stop(InCall& call, const Error& error) {
    if (call.deadline) due_in_.erase({*call.deadline, &call});
    switch (call.state) {
        case InCall::State::ready:
            ready_.erase(call);
            [[fallthrough]];
        case InCall::State::arriving:
            answer(call, error);
            destroy(call);
            return;
        case InCall::State::running:
            answer(call, error);
            if (std::exchange(call.told, true)) return;
            call.stopping = true;
            stopped_.push_back(call);
            return;
        case InCall::State::answering:
            return;
    }
}

void Calls::expire_in(TimePoint now) {
    while (!due_in_.empty() && due_in_.begin()->first <= now) {
        InCall& call = *due_in_.begin()->second;
        stop(call, Error(Errc::timed_out, "the function did not answer in time"));
    }
}

void Calls::respond(InCall& call, Result<std::vector<std::byte>> result) {
    NEXAR_ASSERT(call.state == InCall::State::running);
    if (call.answered) return destroy(call);
    if (result && result->size() > limits_.max_response) {
        result = Error(Errc::limit_exceeded,
                       fmt::format("the answer of the function has {} bytes, but max_response of "
                                   "its node is {}",
                                   result->size(), limits_.max_response));
    }
    if (!result) {
        answer(call, result.error());
        destroy(call);
        return;
    }
    answer(call, *std::move(result));
}

/// Sends the response that the function returned.
void Calls::answer(InCall& call, std::vector<std::byte> response) {
    if (CallOperation* local = std::exchange(call.local, nullptr); local != nullptr) {
        local->local = nullptr;
        auto refused = refusal(*local, response.size());
        local->response = std::move(response);
        end(*local, std::move(refused));
        destroy(call);
        return;
    }
    call.answered = true;
    PeerCalls& calls = calls_of(call.peer);
    Peer& peer = *call.peer;
    calls.held -= std::exchange(call.held, 0);
    const bool on_lane = response.size() <= eager_limit_;
    if (!on_lane && response.size() > limits_.max_held - std::min(limits_.max_held, held(&peer))) {
        const Error no(
            Errc::overloaded,
            fmt::format("answers to this caller hold {} bytes; the caller must read some first",
                        held(&peer)));
        peer.transfers.say_message(port::Lane::rpc, response_of(call.id, no));
        destroy(call);
        return;
    }
    const wire::Response header{
        .call = wire::CallId(call.id),
        .code = {},
        .text = {},
        .size = response.size(),
        .place = on_lane ? wire::PayloadPlace::lane : wire::PayloadPlace::stream};
    if (on_lane) {
        send_response(peer, header, response);
        destroy(call);
        return;
    }
    peer.transfers.say_message(port::Lane::rpc, header);
    if (!peer.transfers.usable()) return destroy(call);
    call.held = response.size();
    calls.held += call.held;
    call.response = std::move(response);
    call.shown = call.response;
    call.state = InCall::State::answering;
    if (call.deadline) due_in_.erase({*call.deadline, &call});
    peer.transfers.send(call, {.kind = TransferKind::response, .number = call.id},
                        port::Priority::bulk);
}

/// Sends a response on the lane, followed by its payload.
void Calls::send_response(Peer& peer, const wire::Response& header,
                          const std::vector<std::byte>& payload) {
    if (!peer.transfers.usable()) return;
    const port::ConstBytes piece(payload);
    if (peer.transfers.write_message(port::Lane::rpc, header, {&piece, 1})) return;
    std::vector<std::byte> whole = wire::to_bytes(header);
    whole.insert(whole.end(), payload.begin(), payload.end());
    peer.transfers.say(port::Lane::rpc, std::move(whole));
}

}  // namespace nexar::engine
