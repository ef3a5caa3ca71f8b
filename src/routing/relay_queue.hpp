#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/mix.hpp"
#include "base/slab.hpp"
#include "base/time.hpp"
#include "base/types.hpp"

namespace nexar::routing {

/// The two ends of a tunnel, in the direction of its packets.
struct Pair {
    Rank source{};
    Rank target{};

    friend bool operator==(const Pair&, const Pair&) noexcept = default;
};

/// `seed` keeps a peer from choosing pairs that all collide.
struct PairHash {
    std::uint64_t seed = 0;

    std::size_t operator()(const Pair& pair) const noexcept {
        return mixed(mixed(seed) ^
                     (std::uint64_t{pair.source.value()} << 32U | pair.target.value()));
    }
};

struct RelayLimits {
    std::size_t pair_bytes = std::size_t{256} << 10U;
    std::size_t total_bytes = std::size_t{2} << 20U;
    std::size_t pairs = 1024;
    /// The congestion control of a tunnel must see a loss instead of a long queue, so a datagram
    /// that has waited this long is dropped.
    Duration longest = std::chrono::milliseconds(50);
};

/// Every datagram that was pushed is counted in `queued`, and when it no longer waits in one of the
/// others: queued = sent + dropped_full + dropped_old + RelayQueue::datagrams().
struct RelayQueueCounts {
    std::uint64_t queued = 0;
    std::uint64_t sent = 0;
    std::uint64_t dropped_full = 0;
    std::uint64_t dropped_old = 0;
};

/// The relayed datagrams that wait for one outgoing link.
///
/// Each pair has a queue of its own, which exists only while it has datagrams. The pairs take turns
/// by bytes: deficit round-robin (M. Shreedhar, G. Varghese, "Efficient Fair Queueing using Deficit
/// Round Robin", SIGCOMM 1995). The quantum is at least the largest datagram, so that every turn
/// sends something and the cost of a pop does not depend on the number of pairs. A pair that begins
/// to send waits for at most one turn of each other pair, which sends less than two quanta.
///
/// A full queue drops from the front, because the congestion control of the sender then notices
/// sooner. A pair with too many bytes loses its own oldest datagram. When all pairs together have
/// too many, the pair with the most bytes loses its oldest, so that a pair cannot crowd out another
/// one that has less. A datagram is refused itself only if it is larger than a whole queue or
/// belongs to a new pair beyond the limit.
///
/// Bytes are those of the memory, see charge(). `now` never goes back.
class RelayQueue {
public:
    explicit RelayQueue(const RelayLimits& limits = {}, std::uint64_t hash_seed = 0);
    RelayQueue(const RelayQueue&) = delete;
    RelayQueue& operator=(const RelayQueue&) = delete;
    ~RelayQueue();

    /// Returns false if the datagram was refused.
    bool push(TimePoint now, const Pair& pair, std::vector<std::byte> datagram);

    /// The next datagram to send; nullopt if none waits.
    std::optional<std::vector<std::byte>> pop(TimePoint now);

    /// Drops what is too old.
    void expire(TimePoint now);
    /// When expire() has something to do.
    std::optional<TimePoint> next_deadline() const;

    bool empty() const noexcept { return oldest_ == nullptr; }
    std::size_t datagrams() const noexcept { return waiting_.used(); }
    std::size_t pairs() const noexcept { return flows_.size(); }
    /// The charges of all that wait.
    std::size_t bytes() const noexcept { return bytes_; }
    std::size_t bytes_of(const Pair& pair) const;
    const RelayQueueCounts& counts() const noexcept { return counts_; }

    /// The memory that a datagram occupies while it waits.
    static std::size_t charge(const std::vector<std::byte>& datagram) noexcept {
        return datagram.capacity() + kOverheadBytes;
    }
    static constexpr std::size_t kOverheadBytes = 96;
    static constexpr std::size_t kQuantumBytes = 2048;

private:
    struct Flow;
    struct Waiting {
        Waiting(std::vector<std::byte>&& bytes, TimePoint now, Flow& of) noexcept
            : datagram(std::move(bytes)), since(now), flow(&of) {}

        std::vector<std::byte> datagram;
        TimePoint since;
        Flow* flow;
        Waiting* next = nullptr;   // of the same pair
        Waiting* older = nullptr;  // of all pairs
        Waiting* newer = nullptr;
    };
    static_assert(sizeof(Waiting) + 2 * sizeof(void*) <= kOverheadBytes);

    /// The queue of a pair.
    struct Flow {
        Pair pair{};
        Waiting* first = nullptr;
        Waiting* last = nullptr;
        std::size_t bytes = 0;
        std::size_t deficit = 0;  // what it may still send in its turn
        std::size_t place = 0;    // in by_size_
        Flow* before = nullptr;   // in the order of the turns
        Flow* after = nullptr;
    };

    bool make_room(const Pair& pair, std::size_t cost);
    Flow& flow_of(const Pair& pair);
    void append(Flow& flow, Waiting& datagram) noexcept;
    std::vector<std::byte> take_first(Flow& flow);
    void unlink(Waiting& datagram) noexcept;
    void end_flow(Flow& flow);

    void join_turns(Flow& flow) noexcept;
    void leave_turns(Flow& flow) noexcept;

    void place_at(std::size_t place, Flow& flow) noexcept;
    void grown(Flow& flow) noexcept;
    void shrunk(Flow& flow) noexcept;

    const RelayLimits limits_;
    std::unordered_map<Pair, Flow, PairHash> flows_;
    Slab<Waiting> waiting_{};
    std::size_t bytes_ = 0;
    std::size_t quantum_ = kQuantumBytes;
    Flow* turn_ = nullptr;  // the pair that sends now
    Flow* last_turn_ = nullptr;
    /// In the order of arrival, so the oldest of all is the first of its pair.
    Waiting* oldest_ = nullptr;
    Waiting* newest_ = nullptr;
    /// A binary heap with the largest flow first: during a flood every push needs that one.
    std::vector<Flow*> by_size_{};
    RelayQueueCounts counts_{};
};

}  // namespace nexar::routing
