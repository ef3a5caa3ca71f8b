#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <nexar/dtype.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/assert.hpp"
#include "base/buffer_pool.hpp"
#include "base/time.hpp"
#include "compute/byte_fold.hpp"
#include "compute/reduce.hpp"
#include "engine/credit.hpp"
#include "engine/intrusive_list.hpp"
#include "engine/memory_executor.hpp"
#include "engine/operation.hpp"
#include "engine/out_stream.hpp"
#include "engine/payload_receiver.hpp"
#include "engine/plan_cache.hpp"
#include "engine/run_memory.hpp"
#include "schedule/choice.hpp"
#include "schedule/request.hpp"
#include "wire/messages.hpp"

namespace nexar::engine {

class CollectiveOperation;
class CollectiveRunner;
struct Context;
struct CollectiveIn;
struct Pair;

/// An outgoing message of a collective. It is written to the lane as a whole, or the link reads it
/// from memory as far as it is ready.
class CollectiveSend final : public OutStream {
public:
    std::uint64_t size() const noexcept override { return bytes; }
    std::span<const port::ConstBytes> regions() const noexcept override { return content; }
    std::uint64_t ready() const noexcept override { return ready_bytes; }
    void released(port::SendOutcome outcome) override;

    enum class State : std::uint8_t {
        idle,
        waiting,    // for credit or room
        streaming,  // the link reads its memory
        ended,
    };

    CollectiveOperation* operation = nullptr;
    std::uint32_t step = 0;
    Pair* pair = nullptr;
    State state = State::idle;
    std::uint64_t bytes = 0;
    std::uint64_t ready_bytes = 0;
    std::vector<port::ConstBytes> content{};
    Hook<CollectiveSend> waiting_hook{};
};

/// The progress of one step of a collective.
struct StepState {
    std::uint32_t waits = 0;  // events that have not happened yet
    bool queued = false;      // in CollectiveOperation::queue
    bool arrived = false;     // for a receive: its message is known
    bool finished = false;
    std::uint64_t done = 0;          // bytes from the front, in whole segments
    CollectiveSend* send = nullptr;  // set when the send begins
    CollectiveIn* in = nullptr;      // a message on a stream
    std::vector<std::byte> kept{};   // a message that arrived on the lane before the step could run
};

/// The description of a call that users see.
struct CollectiveTerms {
    schedule::Collective what = schedule::Collective::barrier;
    DType dtype = DType::u8;
    std::uint32_t element_bytes = 1;
    std::string_view operator_name{};  // of static lifetime; empty: no reduction
    std::uint32_t root = 0;
    bool has_counts = false;        // a v-variant
    bool exchanges_counts = false;  // the exchange of counts before a v-variant
    bool agrees_on_memory = false;  // see MemorySetup
    std::uint64_t count = 0;        // elements as the user states them: in total, or per rank
    std::string_view algorithm{};
    std::uint64_t segment = 0;      // elements
    std::uint64_t fingerprint = 0;  // of what must be equal on all ranks
    std::uint64_t profile = 0;      // hash of the profile that the algorithm was chosen by
};

/// True when every rank knows the counts of all ranks.
inline bool knows_all_counts(const CollectiveTerms& terms) noexcept {
    return !terms.has_counts || terms.what == schedule::Collective::all_gather ||
           terms.what == schedule::Collective::reduce_scatter;
}

/// A collective on one rank: the call and its progress.
class CollectiveOperation final : public Operation {
public:
    CollectiveOperation() noexcept : Operation(Kind::collective) {}

    // Set before start(). The caller owns the memory.
    CollectiveTerms terms{};  // without the algorithm, which the engine chooses
    std::optional<compute::Reducer> reducer{};
    bool in_place = false;
    schedule::Chunks chunks{};
    schedule::Chunks receives{};
    std::vector<port::Bytes> input{};  // never written
    std::vector<port::Bytes> output{};
    Duration timeout{};
    /// When the timeout began; nullopt if with start(), or reserve().
    std::optional<TimePoint> timeout_began{};

    /// When the timeout ends. For an operation that has a number.
    TimePoint expiry() const noexcept { return timeout_began.value_or(started) + timeout; }

    // Used by the engine only, from here on.
    CollectiveRunner* runner = nullptr;
    std::uint64_t number = 0;
    bool reserved = false;     // it has a number and waits for begin()
    bool begins_late = false;  // it was reserved
    std::shared_ptr<const Plan> plan{};
    schedule::Slice result{};  // where an average is divided
    RunMemory memory{};
    PooledBuffer scratch{};
    std::vector<StepState> steps{};
    std::vector<std::uint32_t> queue{};  // steps that may be able to progress
    bool pumping = false;
    std::unique_ptr<CollectiveSend[]> sends{};
    std::uint32_t sends_room = 0;
    std::uint32_t sends_used = 0;
    std::uint32_t unfinished = 0;    // steps
    std::uint32_t links = 0;         // messages whose memory a link uses
    std::optional<Error> failure{};  // its error; it ends once no link uses its memory
    bool differs = false;            // a peer called something else and will describe it
    TimePoint started{};
    TimePoint deadline{};
    TimePoint warn{};
    TimePoint compare{};  // when to tell the awaited ranks again what was called here
    Duration compare_after{};
    /// A rank that abandoned a message and has until `deadline` to give a reason.
    std::optional<Rank> silent{};
    Hook<CollectiveOperation> running_hook{};
    Hook<CollectiveOperation> memory_hook{};
    bool in_memory_queue = false;
    bool listed = false;  // among the runner's running operations
};

/// The collectives of one communicator that run in shared memory, one after the other.
struct MemoryCollectives final : BufferFinder {
    MemoryCollectives(Context& owner, MemorySegments segments)
        : context(&owner), executor(std::move(segments), this) {}
    MemoryCollectives(const MemoryCollectives&) = delete;
    MemoryCollectives& operator=(const MemoryCollectives&) = delete;
    ~MemoryCollectives() override = default;

    std::shared_ptr<const port::PeerMemory> find(std::uint32_t rank,
                                                 std::uint64_t name) const override;

    Context* context;
    MemoryExecutor executor;
    IntrusiveList<CollectiveOperation, &CollectiveOperation::memory_hook> queue{};
    bool begun = false;    // the executor runs the first of the queue
    ShownVectors shown{};  // what the others read in place in the operation that it runs
    bool shows = false;    // any of them
    bool pumping = false;
    bool polled = false;  // in the list of CollectiveRunner::poll_memory()
    Hook<MemoryCollectives> polled_hook{};
};

/// An incoming message of a collective on a stream of its own. It outlives its link, because the
/// sender may finish and leave once all bytes have arrived.
struct CollectiveIn final : PayloadReceiver {
    CollectiveRunner* runner = nullptr;
    Pair* pair = nullptr;
    wire::CollectiveHeader header{};
    CollectiveOperation* operation = nullptr;  // nullptr: it does not need the bytes
    std::uint32_t step = 0;
    bool early = false;     // its operation has not been called here yet
    bool given_up = false;  // its sender abandoned it before the call
    bool complete = false;  // its step has all bytes
    /// Folds the bytes into one piece of memory, which is [fold_begin, fold_end) of the message.
    std::optional<compute::ByteFold> fold{};
    std::uint64_t fold_begin = 0;
    std::uint64_t fold_end = 0;

    std::size_t write(std::uint64_t offset, port::ConstBytes from) noexcept override;
    void attached() override;
    void finished(std::uint64_t came) override;
    void aborted() override;
    bool outlives_link() const noexcept override { return true; }
};

/// An incoming message of a collective behind its header on the lane: one at a time per peer.
struct CollectiveOnLane final : PayloadReceiver {
    CollectiveRunner* runner = nullptr;
    Pair* pair = nullptr;  // nullptr: no message is arriving, or it is dropped
    wire::CollectiveHeader header{};
    std::vector<std::byte> content{};  // the next message reuses its memory

    std::size_t write(std::uint64_t offset, port::ConstBytes from) noexcept override;
    void attached() override {}
    void finished(std::uint64_t came) override;
    void aborted() override {}
};

/// The messages between two ranks in the collectives of one communicator.
struct PairCollectives {
    static constexpr Amount kPool{.payload = std::uint64_t{1} << 20U, .headers = 4096};
    static constexpr Amount kReserve{.payload = std::uint64_t{64} << 10U, .headers = 64};

    Sequence next_out{};
    Sequence next_in{};
    CreditOut pool_out{kPool};
    CreditOut reserve_out{kReserve};
    CreditIn pool_in{kPool};
    CreditIn reserve_in{kReserve};

    /// Sorted by operation: a message never waits behind one of a later operation.
    IntrusiveList<CollectiveSend, &CollectiveSend::waiting_hook> waiting{};
    /// Operations with unwritten messages for the peer, oldest first. Only the first may use the
    /// reserve, so the oldest operation that the peer can be in always progresses.
    struct Unsent {
        std::uint64_t operation = 0;
        std::uint32_t messages = 0;
    };
    std::deque<Unsent> unsent{};
    std::deque<std::vector<std::byte>> said{};  // frames that wait for the introduction or for room
    bool draining = false;

    std::unordered_map<std::uint64_t, std::unique_ptr<CollectiveIn>> streams{};
    std::size_t ahead = 0;  // operations that this peer was the first to mention
};

/// A message of an operation that this rank has not called yet.
struct EarlyCollective {
    Pair* pair = nullptr;
    wire::CollectiveHeader header{};
    std::vector<std::byte> payload{};
    CollectiveIn* stream = nullptr;  // set if it arrives on a stream
};

/// What peers have sent for an operation that has not been called here yet.
struct EarlyOperation {
    Pair* first = nullptr;  // the first peer to mention it
    std::vector<EarlyCollective> messages{};
    std::optional<Error> aborted{};
};

/// How much one rank sends to another, according to each of the two.
struct Share {
    Rank sender{};
    std::uint64_t sends = 0;  // bytes
    Rank receiver{};
    std::uint64_t expects = 0;
};

/// A past call, to compare with the call of a peer.
struct PastCollective {
    CollectiveTerms terms{};
    std::vector<bool> sent_to{};  // by rank, if only sender and receiver know a count
    bool ended_well = false;
    bool difference_told = false;  // the log has a warning that another rank's call differs
};

struct CollectiveFailure {
    std::uint64_t operation = 0;
    Error error;
};

/// The collectives of one communicator.
struct ContextCollectives {
    schedule::Profile profile{};
    std::uint64_t profile_hash = profile.hash();
    std::uint64_t next = 0;      // the number of the next call
    std::uint64_t internal = 0;  // calls of the engine itself, before all others
    std::uint64_t halted = 0;    // calls that failed because this node may not run any
    bool some_lost = false;      // a member is gone
    /// Calls from number `first` on; nullptr: it has ended.
    std::deque<CollectiveOperation*> running{};
    std::uint64_t first = 0;
    std::map<std::uint64_t, EarlyOperation> early{};
    static constexpr std::size_t kPast = 64;
    std::array<PastCollective, kPast> past{};  // the latest calls, by number modulo kPast
    /// Set when a member is gone: the first operation that can no longer run. Later ones cannot
    /// either.
    std::optional<CollectiveFailure> over{};
    /// The latest failures that peers reported. A failing rank tells all members, but it may be
    /// lost before all of them have heard; the rest learn of the failure from the others.
    std::deque<CollectiveFailure> heard{};  // at most kPast
    PlanCache plans{};
    CollectiveTerms last_call{.has_counts = true};  // see CollectiveRunner::fingerprint_of()
    std::uint64_t last_hash = 0;
    std::unique_ptr<MemoryCollectives> memory{};  // nullptr: the ranks share no memory

    /// The number of a call as users count their calls.
    std::uint64_t shown(std::uint64_t number) const noexcept {
        return number - std::min(number, internal);
    }
    CollectiveOperation* find(std::uint64_t number) const noexcept {
        if (number < first || number - first >= running.size()) return nullptr;
        return running[static_cast<std::size_t>(number - first)];
    }
    /// True when messages for the operation can be processed: it was called and is not reserved.
    bool is_called(std::uint64_t number) const noexcept {
        if (number >= next) return false;
        const CollectiveOperation* const found = find(number);
        return found == nullptr || !found->reserved;
    }
    /// nullptr: it has not been called yet, or kPast later calls have been.
    PastCollective* past_call(std::uint64_t number) noexcept {
        return number < next && next - number <= kPast ? &past[number % kPast] : nullptr;
    }
    bool is_over(std::uint64_t number) const noexcept { return over && number >= over->operation; }
    const Error* heard_of(std::uint64_t number) const noexcept {
        if (over && number >= over->operation) return &over->error;
        const auto found = std::ranges::find(heard, number, &CollectiveFailure::operation);
        return found == heard.end() ? nullptr : &found->error;
    }
    void hear(std::uint64_t number, const Error& error) {
        if (heard_of(number) != nullptr) return;
        if (heard.size() == kPast) heard.pop_front();
        heard.push_back({.operation = number, .error = error});
    }

    /// Sets the profile by which algorithms are chosen, which must be equal on all members. Must
    /// precede the first call.
    void set_profile(const schedule::Profile& agreed) {
        NEXAR_ASSERT(next == 0 && memory == nullptr);
        NEXAR_ASSERT(agreed.eager_bytes <= wire::kMaxEagerBytes);
        profile = agreed;
        profile_hash = agreed.hash();
    }
};

}  // namespace nexar::engine
