#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#include "base/types.hpp"

#include "base/buffer_pool.hpp"
#include "base/identity.hpp"
#include "base/time.hpp"
#include "engine/calls.hpp"
#include "engine/collective_runner.hpp"
#include "engine/credit.hpp"
#include "engine/matcher.hpp"
#include "engine/message.hpp"
#include "engine/operation.hpp"
#include "engine/peer.hpp"
#include "port/link.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

/// The numbers of an engine; those that a peer must know are equal on all members.
struct EngineOptions {
    /// Up to here a message is copied at the sender and travels with its header.
    std::size_t eager_limit = std::size_t{16} * 1024;
    /// The part of a larger message that may travel before it is matched.
    std::size_t bulk_head = wire::kBulkHeadBytes;
    /// What a peer may send before it is matched: over all communicators, and in addition in each.
    Amount shared{.payload = std::uint64_t{1024} * 1024, .headers = 16384};
    Amount reserve{.payload = std::uint64_t{64} * 1024, .headers = 64};
    /// Operations that were started and have not ended.
    std::size_t max_pending = std::size_t{1} << 20U;
    /// Communicators that a peer may use before this side has made them.
    std::size_t max_early_contexts = 16384;
    /// Communicators that a peer may use after this side has ended them.
    std::size_t max_ended_contexts = 4096;
    /// Control frames that wait because the peer does not read; beyond, it is cut off.
    std::size_t max_control_backlog = 65536;
    CallLimits calls{};
    CollectiveLimits collectives{};
    /// How long an operation that was cancelled waits for a peer that knows of it: for the answer
    /// that says what became of a message, or for the rest of one that was matched.
    Duration cancel_patience = std::chrono::milliseconds(50);
    /// Changes costs only, see KeyedQueues.
    std::uint64_t hash_seed = 0;
};

/// A communicator, as the engine knows it.
struct Context {
    Context(ContextId name, Rank own, std::uint32_t world, std::uint64_t seed)
        : id(name), me(own), pairs(world), matcher(world, seed) {}

    ContextId id;
    wire::ContextOrigin origin{};
    Rank me;
    std::vector<Pair*> pairs;  // by rank; nullptr for this node itself
    Matcher matcher;
    IntrusiveList<ProbeOperation, &ProbeOperation::probe_hook> probes{};
    std::uint64_t creations = 0;  // communicators made from this one
    bool alone_told = false;      // see Engine::warn_if_alone()
    ContextCollectives collectives{};
};

/// Messages between the members of communicators: matching, flow control, and the operations that
/// users wait for. Sans-I/O: links bring events and take calls, nothing here reads a clock, blocks
/// or calls back. One thread at a time.
///
/// What ended is told by poll_done(), in the order in which it ended.
class Engine final : private InBulk::Owner, private Calls::Host, private CollectiveRunner::Host {
public:
    Engine(const EngineOptions& options, BufferPool& pool);
    ~Engine() override;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// A node that may connect and be a member; before its link comes up.
    Peer& add_peer(const NodeId& node);

    /// Makes a communicator. `members` are known peers by rank, and this node at `me`. A peer that
    /// means another one by the same id is cut off.
    Context& add_context(ContextId id, std::span<const NodeId> members, Rank me,
                         const wire::ContextOrigin& origin = {});

    /// Ends a communicator that nothing is under way in: what peers still send in it is dropped.
    void end_context(Context& context);

    // Each starts at once and ends at some time, perhaps before the call returns. The operation's
    // own settings are made before.
    void start(Context& context, SendOperation& send);
    void start(Context& context, ReceiveOperation& receive);
    void start(Context& context, ProbeOperation& probe);
    /// Receives what was taken out of matching; `message` is the engine's again.
    void start(InMessage& message, ReceiveOperation& receive);
    void start(Context& context, CallOperation& call);
    void start(Context& context, CollectiveOperation& collective);
    /// Two that follow each other: `collective` depends on what `counts` brings. It waits, with its
    /// number, for begin() or abandon(), one of which must follow when `counts` has ended, unless
    /// `collective` has ended by then.
    void start(Context& context, CollectiveOperation& counts, CollectiveOperation& collective);
    void begin(CollectiveOperation& collective);
    void abandon(CollectiveOperation& collective, const Error& error);

    /// The message that a receive with this pattern would get now.
    std::optional<Envelope> look(Context& context, const Pattern& pattern);
    /// The same, and takes it out of matching.
    InMessage* take(Context& context, const Pattern& pattern);
    /// Throws away what was taken out of matching.
    void drop(InMessage& message);

    /// Withdraws what nobody else knows of, and gives up what can be given up. It ends in any case,
    /// also when the peer says nothing: as it would have, with Errc::cancelled, or, if it is a
    /// send, with Errc::outcome_unknown; a peer that knows of it has `cancel_patience` for an
    /// answer. advance() first: that time counts from there.
    void cancel(SendOperation& send);
    void cancel(ReceiveOperation& receive);
    void cancel(ProbeOperation& probe);
    void cancel(CallOperation& call);
    void cancel(CollectiveOperation& collective);

    /// What time it is, before anything else is done with it: ends what has no time left.
    void advance(TimePoint now);
    std::optional<TimePoint> next_deadline() const noexcept;

    /// What is served here, and what was called.
    Calls& calls() noexcept { return calls_; }
    const Calls& calls() const noexcept { return calls_; }

    void handle(const port::LinkEvent& event);

    /// Takes a link over on which the two ends have greeted each other; `control` goes on reading
    /// that lane. False, and nothing happens, when the peer is none, or has a link or had one.
    bool take_over(port::Link& link, std::unique_ptr<LaneReader>& control);

    /// There will be no link to this peer: what waits for it ends with `reason`.
    void give_up(const NodeId& node, const Error& reason);

    /// A peer whose link ended without a goodbye, or that left because something failed there.
    std::optional<std::pair<NodeId, Error>> casualty() const;

    /// A peer that something waits for and that has no link; each is told once.
    std::optional<NodeId> poll_wanted();
    bool has_wanted() const noexcept { return !wanted_.empty(); }

    /// The next operation that ended; it and its memory are the caller's again. nullptr: none.
    Operation* poll_done() noexcept { return done_.pop_front(); }

    /// Ends every operation with Errc::aborted, so that all that are started later end as well, and
    /// tells all members, also those whose link comes up later. Only the first abort counts,
    /// whoever it is of: false, and nothing happens, when there was one.
    bool abort(std::int32_t code, std::string_view why);
    /// The same, as a member says; it is passed on to all others than `from`, whose link it came
    /// over. An Error when it cannot be true.
    Result<void> hear_abort(const wire::Abort& abort, const Peer* from = nullptr);
    /// What every operation ends with, once there was an abort.
    const std::optional<Error>& aborted() const noexcept { return aborted_; }
    const std::optional<wire::Abort>& abort_frame() const noexcept { return abort_; }
    /// No member is left that could hear of it and was not told.
    bool abort_told() const noexcept;

    /// Ends every operation with Errc::closed and closes all links; what still uses memory ends
    /// when they are down, see idle(). Nothing can be started afterwards. Peers are told why, if
    /// something failed here.
    void close(const std::optional<Error>& why = {});
    /// No link is up and no operation under way.
    bool idle() const noexcept;

    const EngineOptions& options() const noexcept { return options_; }
    std::size_t pending() const noexcept { return pending_; }
    /// Messages that came and were not received.
    std::size_t messages() const noexcept { return store_.messages(); }
    /// Memory that is held for messages beside the pool's; bounded by the credits of the peers.
    std::size_t held_bytes() const noexcept { return store_.held_bytes(); }

private:
    class ControlTaker;
    class EagerTaker;

    // engine.cpp
    bool admit(Context& context, Operation& operation);
    void finish(Operation& operation) override;
    void fail(Operation& operation, Error error);

    // engine_cancel.cpp
    void give_up_soon(Operation& operation);
    void give_up_late(TimePoint now);
    void give_up(SendOperation& send);
    void give_up(ReceiveOperation& receive);
    void let_go(ReceiveOperation& receive, Error reason);
    void take_back(Peer& peer, SendOperation& send);
    void ask(Peer& peer, const MessageName& name, SendOperation* send);
    Result<void> on_withdraw_answer(Peer& peer, const wire::Withdraw& answer);

    // engine_abort.cpp
    void end_all(const wire::Abort& abort, const Peer* from);
    void end_sends_to(Peer& peer, const Error& reason);
    void end_receives_from(Peer& peer, const Error& reason);

    // engine_contexts.cpp
    Pair& pair_of(Peer& peer, ContextId context);
    bool has_ended(const wire::ContextOrigin& origin) const;
    Result<void> meet(Pair& pair);
    static Result<Pair*> introduced_pair(Peer& peer, ContextId context);
    Result<void> on_context_begin(Peer& peer, const wire::ContextBegin& begun);
    Result<void> on_context_end(Peer& peer, const wire::ContextEnd& ended);
    static bool begin_at(Pair& pair);
    static bool end_at(Pair& pair);
    static void forget_if_over(Pair& pair);

    // engine_send.cpp
    void send_to_self(Context& context, SendOperation& send);
    void end_local(InMessage& message);
    void cancel_local(SendOperation& send, const Error& reason);
    void drain(Pair& pair);
    void drain(Peer& peer);
    bool announce(Pair& pair, SendOperation& send);
    bool write_eager(Pair& pair, SendOperation& send, bool from_reserve);
    bool write_bulk_header(Pair& pair, SendOperation& send, bool from_reserve, bool awaits_grant);
    void begin_stream(Peer& peer, SendOperation& send);
    Result<void> on_grant(Peer& peer, const wire::Grant& grant);
    void on_released(Peer& peer, const port::Released& released);
    Result<void> on_credit(Peer& peer, const wire::Credit& credit);

    // engine_receive.cpp
    static std::optional<Error> nobody_sends(const Context& context, const Pattern& pattern);
    Result<InMessage*> on_header(Peer& peer, const wire::MessageHeader& header, bool bulk);
    std::uint64_t ahead_of_match(const InMessage& message) const noexcept;
    Result<void> charge(Pair& pair, InMessage& message);
    void store_payload(InMessage& message);
    void give_back(InMessage& message);
    void grant(InMessage& message);
    void match(InMessage& message);
    void deliver(InMessage& message, ReceiveOperation& receive);
    void deliver_local(InMessage& message);
    void deliver_bulk(InMessage& message);
    void refuse_payload(InMessage& message);
    static void refuse(InBulk& stream);
    void payload_complete(InMessage& message);
    void attach(InMessage& message, InBulk& stream);
    void end(InMessage& message);

    // engine_streams.cpp
    void named(InBulk& stream, port::ConstBytes preamble) override;
    void overran(InBulk& stream) override;
    void on_opened(Peer& peer, port::StreamId stream);
    void on_finished(Peer& peer, const port::Finished& finished);
    void on_aborted(Peer& peer, port::StreamId stream);
    Result<void> on_withdraw(Peer& peer, const wire::Withdraw& withdraw);
    void answer(Peer& peer, const MessageName& name, wire::WithdrawStep step);
    void unlist(InMessage& message);
    void conclude(InMessage& message);
    void withdraw(InMessage& message, const Error& reason);

    // engine_links.cpp
    void on_up(port::LinkId id, const port::Up& up);
    void on_down(Peer& peer, const Error& reason);
    void end_receives_of(Context& context, const Pair& pair, const Error& reason);
    static void warn_if_alone(Context& context);
    Peer* awaited(const NodeId& node) noexcept;
    void connect(Peer& peer, port::Link& link, std::unique_ptr<LaneReader> control);
    void begin_lanes(Peer& peer, std::unique_ptr<LaneReader> control);
    void want(Peer& peer) override;
    template <class Message>
    void send_control(Peer& peer, const Message& message);
    void flush_control(Peer& peer);
    void violated(Peer& peer, const Error& error) override;
    void on_report(Peer& peer, const wire::ErrorReport& report);

    // engine_collectives.cpp
    Result<std::uint64_t> on_collective(Peer& peer, const wire::FrameHeader& header,
                                        port::ConstBytes body);
    bool introduce(Pair& pair) override;
    void give_credit(Peer& peer, const wire::Credit& credit) override;
    void refuse_stream(InBulk& stream) override;
    void open_stream(InBulk& stream) override;
    static void keep_rests(Peer& peer, const std::vector<port::Rest>& rests);
    void offer_rests();

    EngineOptions options_;
    MessageStore store_;
    std::unordered_map<ContextId, std::unique_ptr<Context>> contexts_;
    std::unordered_set<ContextId> ended_parents_;  // communicators that others were made from
    std::vector<std::unique_ptr<Peer>> peers_;
    std::unordered_map<port::LinkId, Peer*> by_link_;
    Calls calls_;
    CollectiveRunner collectives_;
    std::deque<NodeId> wanted_;
    /// Streams with a rest of which something changed, see offer_rests().
    std::deque<std::pair<Peer*, port::StreamId>> rests_due_;
    IntrusiveList<Operation, &Operation::done_hook> done_;
    std::size_t pending_ = 0;
    TimePoint now_{};
    std::set<std::pair<TimePoint, Operation*>> giving_up_;               // by Operation::give_up_at
    IntrusiveList<SendOperation, &SendOperation::waiting_hook> locals_;  // sends to oneself
    std::uint64_t self_bytes_ = 0;  // copied messages to oneself that wait
    bool closing_ = false;
    std::optional<wire::Abort> abort_{};
    std::optional<Error> aborted_{};  // by it
};

/// "rank 2 aborted the program with code 3: why", as every operation says it.
Error error_of(const wire::Abort& abort);

}  // namespace nexar::engine
