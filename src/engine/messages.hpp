#pragma once

#include <cstddef>
#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <set>
#include <utility>

#include "base/buffer_pool.hpp"
#include "base/time.hpp"
#include "engine/context.hpp"
#include "engine/credit.hpp"
#include "engine/lane_reader.hpp"
#include "engine/message.hpp"
#include "engine/operation.hpp"
#include "engine/peer.hpp"
#include "engine/services.hpp"
#include "engine/transfers.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

/// Taken from EngineOptions, see there.
struct MessageLimits {
    std::size_t eager_limit = 0;
    std::size_t bulk_head = 0;
    Amount shared{};
    /// Withdrawn messages whose outcome a peer has not reported. A peer with more is disconnected.
    std::size_t max_asking = 0;
    Duration cancel_patience{};
    bool awaits_verdicts = false;
};

/// Messages between the members of communicators: matching, flow control, and how sends, receives
/// and probes end. A part of the Engine, under the same rules.
class Messages {
public:
    Messages(Services& services, const MessageLimits& limits, BufferPool& pool)
        : services_(&services), limits_(limits), store_(pool) {}

    /// See EngineOptions::awaits_verdicts.
    void await_verdicts(bool awaits) noexcept { limits_.awaits_verdicts = awaits; }

    /// See Engine::send_at_once().
    bool send_at_once(Context& context, Rank to, Tag tag, port::ConstBytes content);

    // For operations that the engine has admitted.
    void start(Context& context, SendOperation& send);
    void start(Context& context, ReceiveOperation& receive);
    void start(Context& context, ProbeOperation& probe);
    void start(InMessage& message, ReceiveOperation& receive);
    static std::optional<Envelope> look(Context& context, const Pattern& pattern);
    InMessage* take(Context& context, const Pattern& pattern);
    void drop(InMessage& message);
    void cancel(SendOperation& send);
    void cancel(ReceiveOperation& receive);
    void cancel(ProbeOperation& probe);

    /// Sets the current time and ends cancelled operations whose peer did not answer in time.
    void advance(TimePoint now);
    bool has_deadline() const noexcept { return !giving_up_.empty(); }
    std::optional<TimePoint> next_deadline() const noexcept;

    // Frames and stream names.
    Result<LanePayload> on_header(Peer& peer, Pair& pair, const wire::MessageHeader& header,
                                  bool bulk);
    /// Takes an eager message with its payload, the front of `behind`, if a receive waits for it.
    /// Returns false, having done nothing, if on_header() must take it.
    bool take_at_once(Peer& peer, Pair& pair, const wire::MessageHeader& header,
                      port::ConstBytes behind);
    Result<void> on_grant(Peer& peer, const wire::Grant& grant);
    Result<void> on_withdraw(Peer& peer, const wire::Withdraw& withdraw);
    /// Credit of the shared pool when `pair` is nullptr, else of its reserve.
    Result<void> on_credit(Peer& peer, Pair* pair, const wire::Credit& credit);
    static Awaited look_up(Peer& peer, const TransferName& name);

    // Communicators.
    /// `pair` has just got its context: matches the messages that arrived early.
    void begin(Pair& pair);
    /// Resumes a blocked pair, because both sides have introduced the communicator, which opens its
    /// reserve, or because this side has ended it.
    void unblock(Pair& pair);
    /// This side ends the communicator, in which no operation is pending: drops messages that were
    /// not received.
    void end(Context& context);
    /// The same for one member, before its pair loses the context.
    static void leave(Pair& pair);
    /// Frees messages that were not received, when no link is left.
    void clear(Context& context);
    void clear(Pair& pair);

    // Links.
    void drain(Peer& peer);
    void down(Peer& peer, const Error& reason);

    // Shutdown: ends receives and probes of a communicator, and sends to this rank itself.
    void close(Context& context, const Error& reason);
    void close_local(const Error& reason);
    /// The program was aborted: the same, and also ends everything in flight with a peer.
    void abort(Context& context, const Error& reason);
    void abort_local(const Error& reason);
    void abort(Peer& peer, const Error& reason);

    /// Ends everything of a communicator whose operations all fail from now on.
    void stop(Context& context, const Error& reason);
    /// Ends everything in flight with a peer whose links may be up and may be used again later.
    void halt(Peer& peer, const Error& reason);
    /// Ends the receives and probes that wait for a peer, except those from any source.
    void end_receives(Peer& peer, const Error& reason);
    /// The links of a peer are down, and nobody knows yet whether the peer is lost: ends what only
    /// waited for a link.
    void strand(Peer& peer);

    /// Messages that have arrived and are not received yet.
    std::size_t unreceived() const noexcept { return store_.messages(); }
    std::size_t held_bytes() const noexcept { return store_.held_bytes(); }

private:
    friend class SendOperation;
    friend struct InMessage;

    void finish(Operation& operation);
    void fail(Operation& operation, Error error);

    // messages_send.cpp
    std::size_t eager_limit(const Peer& peer) const noexcept;
    void send_to_self(Context& context, SendOperation& send);
    void end_local(InMessage& message);
    void cancel_local(SendOperation& send, const Error& reason);
    bool introduced(Pair& pair);
    void drain(Pair& pair);
    bool announce(Pair& pair, SendOperation& send);
    void begin_stream(Peer& peer, SendOperation& send);
    void released(SendOperation& send, port::SendOutcome outcome);

    // messages_receive.cpp
    static std::optional<Error> nobody_sends(const Context& context, const Pattern& pattern);
    static bool stream_known(const Peer& peer, const wire::MessageHeader& header);
    bool list_bulk(Peer& peer, InMessage& message);
    InMessage& make(Peer& peer, Pair& pair, const wire::MessageHeader& header, bool bulk);
    std::uint64_t ahead_of_match(const InMessage& message) const noexcept;
    bool charge(Pair& pair, InMessage& message) const noexcept;
    void store_payload(InMessage& message);
    bool deliver_at_once(Peer& peer, Pair& pair, const wire::MessageHeader& header,
                         port::ConstBytes behind);
    void give_back(InMessage& message);
    static void give_back(Pair& pair, const Amount& charge, bool reserve);
    void grant(InMessage& message);
    void match(InMessage& message);
    void deliver(InMessage& message, ReceiveOperation& receive);
    void deliver_local(InMessage& message);
    void deliver_arriving(InMessage& message);
    void refuse_payload(InMessage& message);
    void end(InMessage& message);

    // messages_arriving.cpp
    void attached(InMessage& message);
    void finished(InMessage& message, std::uint64_t came);
    void aborted(InMessage& message);
    void answer(Peer& peer, const MessageName& name, wire::WithdrawStep step);
    void unlist(InMessage& message);
    void conclude(InMessage& message);
    void withdraw(InMessage& message, const Error& reason);

    // messages_cancel.cpp
    void give_up_soon(Operation& operation);
    void give_up(SendOperation& send);
    void give_up(ReceiveOperation& receive);
    void let_go(ReceiveOperation& receive, Error reason);
    void take_back(Peer& peer, SendOperation& send);
    void ask(Peer& peer, const MessageName& name, SendOperation* send);
    Result<void> on_withdraw_answer(Peer& peer, const wire::Withdraw& answer);

    // messages_stop.cpp
    void end_sends(Peer& peer, const Context* only, const Error& reason);
    void end_stopped(SendOperation& send, port::SendOutcome outcome);
    void end_arriving(Pair& pair, const Error& reason);
    Result<LanePayload> drop_header(Peer& peer, Pair& pair, const wire::MessageHeader& header,
                                    bool bulk);

    // messages_ends.cpp
    void end_waiting(Context& context, const Error& receive, const Error& probe);
    void end_receives_of(Context& context, const Pair& pair, const Error& reason);
    static void warn_if_alone(Context& context);
    static TransferName transfer_name(ContextId context, Sequence sequence) noexcept {
        return {.kind = TransferKind::message, .context = context, .number = sequence.value()};
    }
    static Peer& peer_of(const SendOperation& send) noexcept {
        return *send.context->pairs[send.to.value()]->peer;
    }

    Services* services_;
    MessageLimits limits_;
    MessageStore store_;
    TimePoint now_{};
    std::set<std::pair<TimePoint, Operation*>> giving_up_;       // by Operation::give_up_at
    IntrusiveList<SendOperation, &SendOperation::hook> locals_;  // sends to this rank itself
    std::uint64_t self_bytes_ = 0;    // bytes of copied messages to this rank that wait
    std::optional<Error> aborted_{};  // the error of sends after an abort
};

}  // namespace nexar::engine
