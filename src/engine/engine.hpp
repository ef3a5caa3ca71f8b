#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>
#include "base/types.hpp"

#include "base/buffer_pool.hpp"
#include "base/identity.hpp"
#include "base/recorder.hpp"
#include "base/time.hpp"
#include "engine/calls.hpp"
#include "engine/collective_runner.hpp"
#include "engine/context.hpp"
#include "engine/credit.hpp"
#include "engine/messages.hpp"
#include "engine/operation.hpp"
#include "engine/peer.hpp"
#include "engine/services.hpp"
#include "engine/transfers.hpp"
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
    /// Records operations, matches, waits and links, see EventKind; must outlive the engine.
    /// nullptr: nothing is recorded.
    Recorder* recorder = nullptr;
};

/// The operations of one node and its peers: messages, calls and collectives. Sans-I/O: the engine
/// takes events of links and calls links; it never reads a clock, blocks or calls back. One thread
/// at a time.
///
/// It owns the parts and connects them. Messages, Calls and CollectiveRunner do not know each
/// other; they share Services, and Transfers carries what they send and receive.
///
/// poll_done() returns operations in the order in which they ended.
class Engine final : private Transfers::Owner, private Services {
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
    static std::optional<Envelope> look(Context& context, const Pattern& pattern) {
        return Messages::look(context, pattern);
    }
    /// The same, and takes it out of matching.
    InMessage* take(Context& context, const Pattern& pattern) {
        return messages_.take(context, pattern);
    }
    /// Throws away what was taken out of matching.
    void drop(InMessage& message) { messages_.drop(message); }

    /// Withdraws what nobody else knows of, and gives up what can be given up. It ends in any case,
    /// also when the peer says nothing: as it would have, with Errc::cancelled, or, if it is a
    /// send, with Errc::outcome_unknown; a peer that knows of it has `cancel_patience` for an
    /// answer. advance() first: that time counts from there.
    void cancel(SendOperation& send) { messages_.cancel(send); }
    void cancel(ReceiveOperation& receive) { messages_.cancel(receive); }
    void cancel(ProbeOperation& probe) { messages_.cancel(probe); }
    void cancel(CallOperation& call) { calls_.cancel(call); }
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
    std::size_t messages() const noexcept { return messages_.unreceived(); }
    /// Memory that is held for messages beside the pool's; bounded by the credits of the peers.
    std::size_t held_bytes() const noexcept { return messages_.held_bytes(); }

private:
    // engine.cpp
    bool admit(Context& context, Operation& operation);
    void fail(Operation& operation, Error error);
    void want(Peer& peer) override;

    // engine_frames.cpp
    Result<LanePayload> on_frame(Peer& peer, const wire::FrameHeader& header,
                                 port::ConstBytes body) override;
    Result<LanePayload> on_collective_frame(Peer& peer, const wire::FrameHeader& header,
                                            port::ConstBytes body);
    Result<Awaited> look_up(Peer& peer, const TransferName& name) override;
    Result<void> on_credit(Peer& peer, const wire::Credit& credit);
    void on_writable(Peer& peer, port::Lane lane) override;

    // engine_links.cpp
    void on_up(port::LinkId id, const port::Up& up);
    void on_down(Peer& peer, const Error& reason) override;
    void lose(Peer& peer, const Error& reason);
    Peer* awaited(const NodeId& node) noexcept;
    void connect(Peer& peer, port::Link& link, std::unique_ptr<LaneReader> control);
    static void on_report(Peer& peer, const wire::ErrorReport& report);

    // engine_abort.cpp
    void end_all(const wire::Abort& abort, const Peer* from);

    // engine_contexts.cpp
    Pair& pair_of(Peer& peer, ContextId context);
    bool has_ended(const wire::ContextOrigin& origin) const;
    Result<void> meet(Pair& pair);
    static Result<Pair*> introduced_pair(Peer& peer, ContextId context);
    Result<void> on_context_begin(Peer& peer, const wire::ContextBegin& begun);
    Result<void> on_context_end(Peer& peer, const wire::ContextEnd& ended);
    bool introduce(Pair& pair) override;
    bool say_end(Pair& pair) override;
    static void forget_if_over(Pair& pair);

    EngineOptions options_;
    std::unordered_map<ContextId, std::unique_ptr<Context>> contexts_;
    std::uint16_t next_index_ = 0;                 // see Context::index
    std::unordered_set<ContextId> ended_parents_;  // communicators that others were made from
    Transfers transfers_;
    std::vector<std::unique_ptr<Peer>> peers_;
    Messages messages_;
    Calls calls_;
    CollectiveRunner collectives_;
    std::deque<NodeId> wanted_;
    bool closing_ = false;
    std::optional<wire::Abort> abort_{};
};

/// "rank 2 aborted the program with code 3: why", as every operation says it.
Error error_of(const wire::Abort& abort);

}  // namespace nexar::engine
