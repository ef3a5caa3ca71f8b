#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <nexar/result.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/buffer_pool.hpp"
#include "base/time.hpp"
#include "engine/collective.hpp"
#include "engine/lane_reader.hpp"
#include "engine/services.hpp"
#include "engine/transfers.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

struct Context;
struct Peer;

struct CollectiveLimits {
    /// The most credit, in bytes, that a message on a stream uses until its operation is called.
    std::size_t bulk_head = wire::kBulkHeadBytes;
    /// After how long a warning names the ranks that an operation is waiting for.
    Duration warn_after = std::chrono::seconds(5);
    /// The shortest time between two such warnings: ranks that are always late must not flood the
    /// log.
    Duration warn_pause = std::chrono::seconds(30);
    /// After how long an operation tells the ranks that it waits for what was called here, in case
    /// they called something else that sends nothing here. The interval doubles each time.
    Duration compare_after = std::chrono::milliseconds(200);
    /// How long a rank that abandoned a message has to give a reason.
    Duration silence = std::chrono::seconds(5);
    /// Operations that one peer may be the first to mention before they are called here.
    std::size_t max_early = 8192;
    /// Answers to mismatches queued for a peer that does not read. A peer with more is
    /// disconnected.
    std::size_t max_answers = 1024;
};

/// Runs schedules between the members of communicators. A part of the Engine, under the same rules.
///
/// Every call in a communicator has a number. A message is identified by the number of its call,
/// its sender and its own number in the schedule. A message whose operation has not been called
/// here yet waits, within the credit of its pair. It carries a fingerprint of everything that must
/// be equal on all ranks. A rank that fails tells all members; those still in the operation fail
/// too and drop messages that arrive for it later.
class CollectiveRunner {
public:
    CollectiveRunner(Services& services, const CollectiveLimits& limits, BufferPool& pool) noexcept
        : services_(&services), limits_(limits), pool_(&pool) {}

    /// Sets the current time and ends operations whose deadline has passed. Must precede other
    /// calls that depend on the time.
    void advance(TimePoint now);
    std::optional<TimePoint> next_deadline() const noexcept;

    // For operations that the engine has admitted.
    void start(Context& context, CollectiveOperation& operation);
    /// Begins an operation in shared memory before any bookkeeping, and before the time is known,
    /// so that the other ranks see this rank's part early. Returns false, having done nothing, if
    /// that is not possible. enter_published() must follow at once.
    bool publish(Context& context, CollectiveOperation& operation);
    void enter_published(TimePoint now, CollectiveOperation& operation);
    /// Gives an operation its number before it can begin, so later calls have higher numbers. Its
    /// messages wait as if it had not been called. begin() or abandon() must follow.
    void reserve(Context& context, CollectiveOperation& operation);
    /// Begins a reserved operation, whose settings must be complete. Unless
    /// timeout_began is set, its timeout counts from reserve().
    void begin(CollectiveOperation& operation);
    /// Ends a reserved operation that cannot begin; it fails on all ranks.
    void abandon(CollectiveOperation& operation, const Error& error);
    void cancel(CollectiveOperation& operation);
    /// The operation, which may be reserved, must end by `latest` if its timeout does not end
    /// earlier.
    void shorten(CollectiveOperation& operation, TimePoint latest) noexcept;
    /// Uses up a number for a call that the engine did not admit; the call fails on all ranks.
    void pass_over(Context& context, const Error& reason);

    // Shared memory.
    bool set_memory(Context& context, std::shared_ptr<port::SharedMemory> own,
                    std::vector<std::shared_ptr<const port::PeerMemory>> others);
    /// Goes on with operations that wait for other ranks in shared memory. Returns true if anything
    /// happened.
    bool poll_memory() { return !polled_.empty() && poll_all_memory(); }
    /// The user's memory that peers can read in place.
    OwnBuffers& buffers() noexcept { return buffers_; }

    // Frames and stream names.
    Result<LanePayload> on_header(Peer& peer, Pair& pair, const wire::CollectiveHeader& header);
    Result<void> on_mismatch(Pair& pair, const wire::CollectiveMismatch& mismatch);
    Result<void> on_abort(Pair& pair, const wire::CollectiveAbort& abort);
    Result<void> on_credit(Peer& peer, Pair& pair, const wire::Credit& credit);
    static Awaited look_up(Peer& peer, const TransferName& name);

    // Links.
    void drain(Peer& peer);
    void drain(Pair& pair);
    void down(Peer& peer, const Error& reason);
    /// This side leaves the communicator: its pending operations fail on all ranks.
    void close(Context& context, const std::optional<Error>& why);
    /// Ends all operations. With `tell`, tells the members, who learn of an abort otherwise.
    void abort(Context& context, const Error& error, bool tell = false);
    /// All operations of the communicator fail from now on. With `tell`, tells the members.
    void stop(Context& context, const Error& error, bool tell);
    /// This node may not run operations for now: ends those of a communicator, on all ranks.
    void halt(Context& context, const Error& error);
    /// The links of a peer are down, and nobody knows yet whether the peer is lost: ends what only
    /// waited for a link.
    void strand(Peer& peer);
    /// Ends a communicator in which no operation is pending.
    void end(Context& context);
    /// The peer ended the communicator after taking part in `operations` operations.
    void ended(Pair& pair, std::uint64_t operations);
    /// Writes the frames that must reach the peer before the communicator ends. Returns false if
    /// there is no room.
    bool flush_said(Pair& pair);

private:
    friend class CollectiveSend;
    friend struct CollectiveIn;
    friend struct CollectiveOnLane;

    // collective_runner.cpp: calls
    void take_number(Context& context, CollectiveOperation& operation);
    void run(Context& context, CollectiveOperation& operation);
    static void reset(CollectiveOperation& operation) noexcept;
    void list(CollectiveOperation& operation);
    static Result<void> plan(Context& context, CollectiveOperation& operation);
    Result<void> lay_out(CollectiveOperation& operation);
    static std::uint64_t fingerprint_of(const CollectiveOperation& operation);
    static std::string description_of(const CollectiveTerms& terms);
    static void remember(Context& context, const CollectiveOperation& operation);
    void enter(Context& context, CollectiveOperation& operation);
    void take_early(Context& context, CollectiveOperation& operation);
    void drop_early(Context& context, std::uint64_t number);
    void look_for_lost(Context& context, CollectiveOperation& operation);
    void conclude(CollectiveOperation& operation);
    void retire(CollectiveOperation& operation);

    // collective_runner_memory.cpp: operations in shared memory
    bool run_at_once(Context& context, CollectiveOperation& operation);
    void enter_memory(Context& context, CollectiveOperation& operation);
    bool poll_all_memory();
    bool pump_memory(MemoryCollectives& memory);
    bool begin_memory(MemoryCollectives& memory, CollectiveOperation& operation);
    void begin_call(MemoryCollectives& memory, const CollectiveOperation& operation);
    bool show_all(MemoryCollectives& memory, const CollectiveOperation& operation);
    ShownVector show(const Context& context, const CollectiveOperation& operation,
                     std::uint32_t stage);
    static bool share(const OwnBuffers::Entry& buffer, Peer& peer);
    static void end_call(MemoryCollectives& memory);
    void end_if_absent(MemoryCollectives& memory, CollectiveOperation& operation);
    bool end_if_lost(MemoryCollectives& memory, CollectiveOperation& operation);
    void leave_memory(CollectiveOperation& operation);
    void nudge_all(const MemoryCollectives& memory);
    static bool needs_in_memory(const CollectiveOperation& operation, std::uint32_t rank) noexcept;
    static bool awaits_in_memory(const CollectiveOperation& operation, std::uint32_t rank) noexcept;

    // collective_runner_run.cpp: steps
    void look_at(CollectiveOperation& operation, std::uint32_t step);
    void pump(CollectiveOperation& operation);
    void run_step(CollectiveOperation& operation, std::uint32_t step);
    std::uint64_t allowed(const CollectiveOperation& operation, std::uint32_t step) const noexcept;
    void run_local(CollectiveOperation& operation, std::uint32_t step, std::uint64_t until);
    void run_send(CollectiveOperation& operation, std::uint32_t step, std::uint64_t until);
    void run_receive(CollectiveOperation& operation, std::uint32_t step, std::uint64_t until);
    void land_whole(CollectiveOperation& operation, std::uint32_t step, port::ConstBytes bytes);
    void came_so_far(CollectiveOperation& operation, std::uint32_t step, std::uint64_t done);
    void happened(CollectiveOperation& operation, std::uint32_t step, schedule::Milestone event);
    void finish_step(CollectiveOperation& operation, std::uint32_t step);
    std::size_t stream_bytes(CollectiveIn& in, std::uint64_t offset, port::ConstBytes from);
    void land(CollectiveIn& in, std::uint64_t offset, port::ConstBytes bytes);

    // collective_runner_out.cpp: messages to peers
    void enqueue(CollectiveSend& send);
    bool write_waiting(Pair& pair);
    bool write(CollectiveSend& send);
    static bool write_header(const CollectiveSend& send, bool from_reserve, bool on_lane);
    static void begin_stream(CollectiveSend& send);
    void released(CollectiveSend& send, port::SendOutcome outcome);
    static void add_unsent(Pair& pair, std::uint64_t operation, std::uint32_t messages);
    static void forget_places(Context& context, std::uint64_t operation);
    void drain_all(Context& context);
    void count_written(Pair& pair, std::uint64_t operation);
    void forget_unsent(CollectiveOperation& operation);
    void block(Pair& pair);
    template <class Message>
    void say(Pair& pair, const Message& message);
    Amount charge_of(const wire::CollectiveHeader& header) const noexcept;

    // collective_runner_in.cpp: messages from peers
    void arrived(Pair& pair, const wire::CollectiveHeader& header, port::ConstBytes payload);
    void arrived(Pair& pair, CollectiveIn& in);
    std::optional<std::uint32_t> accept(CollectiveOperation& operation, Pair& pair,
                                        const wire::CollectiveHeader& header);
    void take(CollectiveOperation& operation, std::uint32_t step, port::ConstBytes payload);
    void take(CollectiveOperation& operation, std::uint32_t step, CollectiveIn& in);
    void came_late(Pair& pair, const wire::CollectiveHeader& header);
    void give_back(Pair& pair, const wire::CollectiveHeader& header);
    void attached(CollectiveIn& in);
    void finished(CollectiveIn& in, std::uint64_t came);
    void aborted(CollectiveIn& in);
    void drop(CollectiveIn& in);
    EarlyOperation* early(Pair& pair, std::uint64_t number);
    EarlyOperation called(Context& context, std::uint64_t number);

    // collective_runner_abort.cpp: failures
    void fail(CollectiveOperation& operation, const Error& error, bool tell = true);
    void end_from(Context& context, std::uint64_t number, const Error& error, bool tell = true);
    void tell_all(Context& context, std::uint64_t number, const Error& error);
    void let_go(CollectiveOperation& operation);
    void differ(CollectiveOperation& operation, Pair& pair);
    void gave_up(CollectiveOperation& operation, Rank rank);
    void warn(CollectiveOperation& operation, TimePoint now);
    void compare(CollectiveOperation& operation, TimePoint now);
    void be_due(const CollectiveOperation& operation) noexcept;
    void expire(CollectiveOperation& operation);
    Result<void> may_answer(const Pair& pair) const;
    static Error unfit(const CollectiveTerms& terms, std::uint64_t number, const Share& share);
    static std::map<std::uint32_t, std::uint64_t> awaited(const CollectiveOperation& operation);
    static std::string late_ranks(const CollectiveOperation& operation);
    void lose(CollectiveIn& in);
    bool needs(const CollectiveOperation& operation, const Peer& peer) const noexcept;
    std::vector<CollectiveOperation*> all_running() const;

    Services* services_;
    CollectiveLimits limits_;
    BufferPool* pool_;
    TimePoint now_{};
    TimePoint next_warning_{};
    /// A lower bound for the next deadline.
    std::optional<TimePoint> due_{};
    IntrusiveList<CollectiveOperation, &CollectiveOperation::running_hook> running_{};
    IntrusiveList<MemoryCollectives, &MemoryCollectives::polled_hook> polled_{};
    OwnBuffers buffers_{};
};

}  // namespace nexar::engine
