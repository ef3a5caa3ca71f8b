#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/identity.hpp"
#include "base/recorder.hpp"
#include "base/time.hpp"
#include "base/types.hpp"
#include "base/view.hpp"
#include "engine/agreements.hpp"
#include "engine/calls.hpp"
#include "engine/collective_runner.hpp"
#include "engine/context.hpp"
#include "engine/credit.hpp"
#include "engine/engine_options.hpp"
#include "engine/former_peers.hpp"
#include "engine/link_news.hpp"
#include "engine/membership_queue.hpp"
#include "engine/messages.hpp"
#include "engine/operation.hpp"
#include "engine/peer.hpp"
#include "engine/routing_news.hpp"
#include "engine/services.hpp"
#include "engine/transfers.hpp"
#include "port/link.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

/// Runs the operations between this node and its peers: messages, calls and collectives. Sans-I/O:
/// the engine handles link events and calls links; it never reads a clock, blocks or calls back.
/// Only one thread at a time may use it.
///
/// It owns the parts and connects them. Messages, Calls and CollectiveRunner do not know each
/// other; they share Services, and Transfers carries what they send and receive.
///
/// poll_done() returns operations in the order in which they ended.
class Engine final : private Transfers::Owner, private Services, private Agreements::Owner {
public:
    Engine(const EngineOptions& options, BufferPool& pool);
    ~Engine() override;
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    /// Adds a node that may connect and be a member. Must precede its link.
    Peer& add_peer(const NodeId& node);

    /// Makes a communicator. `members` has the node of each rank, with this node at `me`. A peer
    /// that uses the same id for another communicator is disconnected.
    Context& add_context(ContextId id, std::span<const NodeId> members, Rank me,
                         const wire::ContextOrigin& origin = {});

    /// Ends a communicator in which no operation is pending. Drops what peers still send in it.
    void end_context(Context& context);

    // Each starts the operation immediately; it may end before start() returns. Its settings must
    // be complete.
    void start(Context& context, SendOperation& send);
    void start(Context& context, ReceiveOperation& receive);
    void start(Context& context, ProbeOperation& probe);
    /// Sends a small message without an operation, as if start() had been called and the send had
    /// ended. Returns false, having done nothing, if that is not possible now. record_sent() should
    /// follow.
    bool send_at_once(Context& context, Rank to, Tag tag, port::ConstBytes content) {
        if (aborted_ || closing_ || halted_ || context.over) return false;
        if (pending_ >= options_.max_pending) return false;
        return messages_.send_at_once(context, to, tag, content);
    }
    void record_sent(TimePoint now, const Context& context, Rank to, Tag tag,
                     std::size_t bytes) noexcept {
        recording_.advance(now);
        recording_.sent(context, to, tag, bytes);
    }
    /// Receives a message that was taken out of matching; the engine owns `message` again.
    void start(InMessage& message, ReceiveOperation& receive);
    void start(Context& context, CallOperation& call);
    void start(Context& context, CollectiveOperation& collective);
    void start(Context& context, AgreeOperation& agreement);
    /// Begins a collective in shared memory, as the first thing of its start. Returns false, having
    /// done nothing, if that is not possible: call start(). Otherwise enter_published() must follow
    /// at once, with the time, which this call does not need.
    bool publish(Context& context, CollectiveOperation& collective);
    void enter_published(TimePoint now, CollectiveOperation& collective);
    /// Starts `counts` and reserves a number for `collective`, which depends on its result. When
    /// `counts` has ended, begin() or abandon() must follow, unless `collective` has already ended.
    void start(Context& context, CollectiveOperation& counts, CollectiveOperation& collective);
    void begin(CollectiveOperation& collective);
    void abandon(CollectiveOperation& collective, const Error& error);

    /// From the next collective on, the ranks of this communicator share memory: `own` is this
    /// rank's segment, `others` has those of the other ranks, nullptr for this one. All ranks must
    /// call it before the same collective, with segments of one size. Returns false if the segments
    /// are too small or their sizes differ: then nothing changes.
    bool set_memory(Context& context, std::shared_ptr<port::SharedMemory> own,
                    std::vector<std::shared_ptr<const port::PeerMemory>> others) {
        return collectives_.set_memory(context, std::move(own), std::move(others));
    }
    /// Lets the first collective of a communicator set up such memory with segments of this many
    /// bytes, if all ranks can. All ranks must call it, before the first collective.
    void want_memory(Context& context, std::size_t bytes);
    /// After close(): frees the shared memory of all communicators. No operation may be pending.
    void release_memory() noexcept;
    /// Goes on with collectives that wait for other ranks in shared memory. Returns true if
    /// anything happened. Call it often while operations are pending: nothing else wakes them.
    bool poll_memory();

    /// Lets peers that share memory with this node read a buffer of the user in place, in
    /// collectives that use it; see memory_buffers.hpp. Returns its name.
    std::uint64_t add_buffer(std::shared_ptr<port::SharedMemory> memory);
    /// The user released the buffer.
    void remove_buffer(std::uint64_t name) noexcept;

    /// The message that a receive with this pattern would get now, if any.
    static std::optional<Envelope> look(Context& context, const Pattern& pattern) {
        return context.over ? std::nullopt : Messages::look(context, pattern);
    }
    /// The same, but takes the message out of matching. nullptr: there is none.
    InMessage* take(Context& context, const Pattern& pattern) {
        return context.over ? nullptr : messages_.take(context, pattern);
    }
    /// Drops a message that was taken out of matching.
    void drop(InMessage& message) { messages_.drop(message); }

    /// Cancels an operation. It always ends, even if the peer is silent: normally, with
    /// Errc::cancelled, or, for a send, with Errc::outcome_unknown. A peer that knows of it has
    /// `cancel_patience` to answer, counted from the last advance().
    void cancel(SendOperation& send) { messages_.cancel(send); }
    void cancel(ReceiveOperation& receive) { messages_.cancel(receive); }
    void cancel(ProbeOperation& probe) { messages_.cancel(probe); }
    void cancel(CallOperation& call) { calls_.cancel(call); }
    void cancel(CollectiveOperation& collective);
    void cancel(AgreeOperation& agreement) { agreements_.cancel(agreement); }

    /// Sets the current time and ends operations whose deadline has passed. Must precede other
    /// calls that depend on the time.
    void advance(TimePoint now);
    std::optional<TimePoint> next_deadline() const noexcept;
    /// Counts frames other than those of messages, calls and collectives. When it changes, parts of
    /// the node besides the engine may have something to do.
    std::uint64_t rare_frames() const noexcept { return rare_frames_; }
    /// The time of events that are recorded from now on; advance() sets it too.
    void set_recording_time(TimePoint now) noexcept { recording_.advance(now); }

    /// The functions that this node serves, and the calls it receives.
    Calls& calls() noexcept { return calls_; }
    const Calls& calls() const noexcept { return calls_; }

    void handle(const port::LinkEvent& event);

    /// Takes over the first link to a peer, on which both ends have completed the handshake;
    /// `control` keeps reading the control lane, to which `control_bytes` were written after the
    /// preamble. Returns false and does nothing if the node is not a peer, or has or had a link.
    /// Further links of a peer come with their Up.
    bool take_over(port::Link& link, std::unique_ptr<LaneReader>& control,
                   std::uint64_t control_bytes);
    std::optional<LinkNews> poll_link_news();
    void send_link_news(const NodeId& node, const LinkMessage& message);
    /// Lets a further link be used: the peer has it too. Until then this node only reads it, unless
    /// it has no other. Returns false if the peer's link is not up.
    bool use_link(const NodeId& node, port::LinkId link);
    bool is_connected(const NodeId& node) const noexcept;
    /// Tells peers to which this node has tunnels that it leaves. What this sends also acknowledges
    /// what they have sent, before the tunnels end.
    void say_goodbye_through_tunnels();
    /// False while something that was sent through a tunnel may not have arrived at a peer that was
    /// heard since.
    bool tunnels_settled(TimePoint since) const noexcept;
    /// Ends all links of a peer so that another one can take their place: the peer has lost its
    /// ends, or they no longer work. Returns false if the peer has none or may get no other.
    bool lose_links(const NodeId& node);
    /// Nothing has come from a member for long, although its link is up.
    void set_silent(const NodeId& node, bool silent);
    /// True if the link to a member is up, but does not seem to work: the member is silent, or the
    /// link has stalled. The mesh then tries if another link would work: a QUIC link that was cut
    /// for some time may need as long again until it notices that the path works.
    bool is_doubtful(const NodeId& node) const noexcept;
    /// True if the link to this member was lost, and another one may take its place.
    bool awaits_link(const NodeId& node) const noexcept;
    /// The kinds of the links of a peer.
    std::vector<std::string> links_of(const NodeId& node) const;
    /// Uses this link of a peer, whatever its speed is. Returns false if the peer does not have it.
    bool prefer(const NodeId& node, port::LinkId link);

    // Members without a direct link, see engine/overlay.hpp.

    RoutingNews& routing_news() noexcept { return routing_news_; }
    /// The first link to the node that does not run through others; nullptr: there is none.
    port::Link* direct_link(const NodeId& node) const noexcept;
    /// Grows whenever direct_link() or is_doubtful() of any node may have changed.
    std::uint64_t link_changes() const noexcept { return link_changes_; }
    void send_link_state(const NodeId& node, const wire::LinkState& state);
    void send_path_request(const NodeId& node, const wire::PathRequest& request);
    /// Ends all links of a peer that broke the rules.
    void disconnect(const NodeId& node, const Error& why);

    /// Ends the operations that wait for this peer with `reason`: there will be no link to it.
    void give_up(const NodeId& node, const Error& reason);

    /// A peer whose link went down without a goodbye, or that left because of a failure there; not
    /// one that this node cannot reach now: that may change.
    std::optional<std::pair<NodeId, Error>> casualty() const;

    /// Returns the next peer that an operation waits for and that has no link. Returns each peer
    /// once.
    std::optional<NodeId> poll_wanted();
    bool has_wanted() const noexcept { return !wanted_.empty(); }

    /// Returns the next operation that has ended, or nullptr. The caller owns it and its memory
    /// again.
    Operation* poll_done();

    // Members come and go.

    /// Adopts a decided view. Must precede evict() of the nodes that it no longer contains, and
    /// add_peer() of those that are new. Frees what it can of nodes that earlier views lost.
    void set_view(const View& view);
    Epoch epoch() const noexcept { return view_.epoch; }
    /// True if the node, which may be this one, is a member of the current view.
    bool in_view(const NodeId& node) const noexcept { return view_.find(node) != nullptr; }
    /// See EngineOptions::awaits_verdicts.
    void await_verdicts(bool awaits) noexcept {
        options_.awaits_verdicts = awaits;
        messages_.await_verdicts(awaits);
    }
    /// The members agreed in this epoch that these nodes are gone. Cuts their links at once;
    /// nothing of them is delivered any more, and they cannot connect again. Every operation of a
    /// communicator that contains one of them ends with Errc::membership_changed, now or when no
    /// link uses its memory, and so do later ones; so do calls of such a node.
    void evict(std::span<const NodeId> nodes, Epoch epoch);
    /// This node left in good order: operations with it end with its link, or now if nothing came
    /// from it since, or if it has a tunnel, which it emptied before. Returns false if no link is
    /// left.
    bool release(const NodeId& node, TimePoint since);
    /// This node cannot reach a member that others can reach: operations with it end with `reason`,
    /// and so do collectives of all communicators that contain it. A link that is up stays up.
    void set_unreachable(const NodeId& node, const Error& reason);
    /// Allows operations with the node again, if its link is still up or there was none. The
    /// collectives that set_unreachable() ended do not come back: make a new communicator.
    void set_reachable(const NodeId& node);
    /// While set, every operation ends with Errc::minority_partition. Links stay up.
    void set_minority(bool minority);
    /// This node was evicted in this epoch: every operation ends with Errc::evicted, for ever.
    void expel(Epoch epoch);
    /// Ends the operations of a communicator with Errc::revoked, here and on all its members.
    void revoke(Context& context);

    /// Returns the next message of a peer for the membership of this node.
    std::optional<MembershipNews> poll_membership() { return membership_.poll(); }
    /// Heartbeats travel as datagrams, the rest on the control lane. Drops the message if the peer
    /// is not connected or does not read.
    void send_membership(const NodeId& node, const membership::Message& message);
    std::optional<PeerHint> poll_hint() { return membership_.poll_hint(); }

    /// Tells a node that has joined which communicator is its world.
    void send_new_world(const NodeId& node, const wire::NewWorld& world);
    /// Returns the world that members have made for this node, once.
    bool has_new_world() const noexcept { return new_world_.has_value(); }
    /// Keeps a world that was made from a later view than `known`.
    std::optional<wire::NewWorld> poll_new_world(Epoch known) {
        if (!new_world_ || new_world_->origin.epoch > known) return std::nullopt;
        return std::exchange(new_world_, {});
    }

    /// Ends every operation with Errc::aborted, including those started later, and tells all
    /// members, including those whose link comes up later. Only the first abort of any member
    /// counts: if there was one, returns false and does nothing.
    bool abort(std::int32_t code, std::string_view why);
    /// Does the same for an abort that a member announced, and tells all members except `from`,
    /// which sent it. Fails if the announcement cannot be true.
    Result<void> hear_abort(const wire::Abort& abort, const Peer* from = nullptr);
    /// The error of every operation after an abort.
    const std::optional<Error>& aborted() const noexcept { return aborted_; }
    const std::optional<wire::Abort>& abort_frame() const noexcept { return abort_; }
    /// True when every member that can still be reached knows of the abort.
    bool abort_told() const noexcept;

    /// Ends every operation with Errc::closed and closes all links; an operation whose memory a
    /// link uses ends when the link is down, see idle(). Nothing can be started afterwards. Tells
    /// peers `why`, if something failed here. Tunnels of a node that has left end at once, because
    /// relays forward for members only.
    void close(const std::optional<Error>& why = {}, bool has_left = false);
    /// No link is up and no operation is pending.
    bool idle() const noexcept;

    const EngineOptions& options() const noexcept { return options_; }
    std::size_t pending() const noexcept { return pending_; }
    /// Nodes of which the engine has a record: members, and former ones that something refers to.
    std::size_t peers() const noexcept { return peers_.size(); }
    /// Messages that have arrived and are not received yet.
    std::size_t messages() const noexcept { return messages_.unreceived(); }
    /// Memory held for messages, not counting the pool. The credit of the peers bounds it.
    std::size_t held_bytes() const noexcept { return messages_.held_bytes(); }

private:
    // engine.cpp
    bool admit(Context& context, Operation& operation);
    void fail(Operation& operation, Error error);
    void want(Peer& peer) override;

    // engine_frames.cpp
    std::size_t on_eager(Peer& peer, port::ConstBytes bytes) override;
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
    void renew(Peer& peer);
    void settle_older(const Peer& peer, const Error& reason);
    void abort_collectives(Peer& peer, const Error& reason);
    Peer* find(const NodeId& node) const noexcept;
    bool admits(const Peer& peer, const port::Link& link) const noexcept;
    void connect(Peer& peer, port::Link& link, std::unique_ptr<LaneReader> control = nullptr,
                 std::uint64_t control_bytes = 0);
    static void on_report(Peer& peer, const wire::ErrorReport& report);
    template <class Message>
    Result<void> on_link_news(Peer& peer, const Message& message);

    // engine_agreements.cpp
    void send(const NodeId& to, const wire::Agreement& frame) override;
    void end(AgreeOperation& operation) override;
    void agreed(ContextId context, std::uint64_t creation) override;

    // engine_membership.cpp
    void stop(Context& context, const Error& reason, bool tell);
    void stop_if_lost(Context& context);
    void halt(const Error& reason);
    void forget_former_peers();
    bool is_needed(Peer& peer);

    // engine_verdicts.cpp
    void on_link_down(Peer& peer, const port::Down& down) override;
    void on_refused(Peer& peer) override;
    void on_stalled(Peer& peer, bool stalled) override;
    void spread_revocation(Context& context, const Peer* from);
    void tell_again(Peer& peer);
    static void say_later(Peer& peer, const membership::Message& message);
    Result<void> on_revoke(Peer& peer, const wire::Revoke& revoke);
    Result<void> take_revocation(Context& context, const Peer& from);
    void look_for_revocation(Context& context);
    Result<void> on_datagram(Peer& peer, port::ConstBytes bytes) override;
    Result<void> on_membership_frame(Peer& peer, const wire::FrameHeader& header,
                                     port::ConstBytes body);

    // engine_routing.cpp
    Result<void> on_routing_frame(const Peer& peer, const wire::FrameHeader& header,
                                  port::ConstBytes body);

    // engine_memory.cpp
    void begin_memory(Context& context, Duration timeout);
    bool share_segment(Context& context);
    void look_at_memory(Context& context);
    void agree_on_memory(Context& context, bool possible);
    void advance_memory(TimePoint now);
    void look_at_exchanges();
    void on_shared(Peer& peer, const port::Shared& shared) override;
    void hold(Context& context, CollectiveOperation& collective);
    bool cancel_held(const CollectiveOperation& collective);
    void on_agreement(CollectiveOperation& agreement);
    void nudge(Peer& peer) override { peer.transfers.nudge(); }

    // engine_abort.cpp
    void end_all(const wire::Abort& abort, const Peer* from);

    // engine_contexts.cpp
    Pair& pair_of(Peer& peer, ContextId context);
    bool has_ended(const wire::ContextOrigin& origin) const;
    void remember_ended(ContextId parent);
    Result<void> meet(Pair& pair);
    static Result<Pair*> introduced_pair(Peer& peer, ContextId context);
    Result<void> on_context_begin(Peer& peer, const wire::ContextBegin& begun);
    Result<void> on_context_end(Peer& peer, const wire::ContextEnd& ended);
    bool introduce(Pair& pair) override;
    bool say_end(Pair& pair) override;
    static void forget_if_over(Pair& pair);

    EngineOptions options_;
    std::unordered_map<ContextId, std::unique_ptr<Context>> contexts_;
    std::uint16_t next_index_ = 0;         // see Context::index
    std::deque<ContextId> ended_parents_;  // the last ended ones that others were made from
    Transfers transfers_;
    std::vector<std::unique_ptr<Peer>> peers_;
    FormerPeers former_;
    Messages messages_;
    Calls calls_;
    CollectiveRunner collectives_;
    Agreements agreements_;
    std::deque<NodeId> wanted_;
    std::deque<LinkNews> link_news_;
    View view_;
    bool expelled_ = false;
    std::optional<wire::NewWorld> new_world_{};  // the first one that any peer has named
    MembershipQueue membership_;
    RoutingNews routing_news_;
    std::uint64_t link_changes_ = 0;
    std::vector<Context*> exchanging_;  // whose MemorySetup waits for segments
    std::uint64_t rare_frames_ = 0;
    bool closing_ = false;
    std::optional<wire::Abort> abort_{};
};

/// Says that the sender closes its node in good order.
wire::ErrorReport goodbye();

}  // namespace nexar::engine
