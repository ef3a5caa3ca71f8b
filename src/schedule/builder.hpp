#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <unordered_map>
#include <vector>

#include "schedule/range_map.hpp"
#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// Turns a plain sequence of steps into a schedule. An algorithm adds steps in an order that would
/// be correct if each step ended before the next one began. The builder derives from the slices
/// which steps really have to wait for which others, so that all other steps can run concurrently:
///
/// - a read waits for the last write of the same elements,
/// - a write waits for the reads since then (for a send: for its release), or for the last write.
///
/// The builder leaves out dependencies that others imply, and pipelines steps that pass on the same
/// slice in the same segments. It numbers the messages of each ordered pair of ranks in the order
/// in which they are added, so both ranks must add their common messages in the same order.
///
/// Steps without elements are dropped, which makes tiny and uneven counts free. Both ends drop the
/// same messages, because their counts are equal. Signals are the exception.
class Builder {
public:
    using StepId = std::uint32_t;
    static constexpr StepId kNone = std::numeric_limits<StepId>::max();  // a dropped step

    /// Steps run in segments of `segment` elements; 0: each step runs in one piece.
    explicit Builder(std::uint64_t segment = 0) : segment_(segment) {}

    /// Reserves `count` elements of scratch that no other call returns.
    Slice scratch(std::uint64_t count);

    StepId send(std::uint32_t peer, const Slice& from);
    StepId receive(std::uint32_t peer, const Slice& into);
    StepId receive_reduce(std::uint32_t peer, const Slice& into, const Slice& local,
                          compute::Side side);
    /// Dropped if both are the same slice.
    StepId copy(const Slice& from, const Slice& into);
    StepId reduce(const Slice& from, const Slice& into, const Slice& local, compute::Side side);

    /// Messages without elements; their arrival is the information.
    StepId send_signal(std::uint32_t peer);
    StepId receive_signal(std::uint32_t peer);

    /// The peers of the messages added from now on are positions in this list of ranks, so that a
    /// part of an algorithm for a whole world runs among some of its ranks. Empty: peers are ranks.
    void among(std::span<const std::uint32_t> ranks) { ranks_.assign(ranks.begin(), ranks.end()); }

    /// The messages added from now on are in memory: of this stage, at this place.
    void in_memory(std::uint32_t stage, std::uint64_t place) {
        stage_ = stage;
        place_ = place;
    }

    /// Makes the step that was added last also wait until the `earlier` steps have finished, for a
    /// reason that the slices do not show. Ignores dropped steps.
    void after(StepId last, std::span<const StepId> earlier);

    Schedule build() &&;

private:
    struct Access {
        StepId step = kNone;
        std::uint64_t offset = 0;  // of the whole slice that the step accessed
        std::uint64_t count = 0;
    };
    struct Cell {
        Access writer;
        std::vector<Access> readers;  // since the writer
    };

    std::uint32_t rank_at(std::uint32_t peer) const { return ranks_.empty() ? peer : ranks_[peer]; }
    StepId add_message(Kind kind, std::uint32_t peer, Step step);
    StepId add(Step step);
    void read(StepId step, const Slice& slice);
    void write(StepId step, const Slice& slice);
    void wait_for(const Access& earlier, const Slice& slice);
    void need(const Dependency& dependency);
    void leave_out_implied();
    bool implied(const Dependency& wanted, std::size_t first) const;

    std::uint64_t segment_;
    std::uint32_t stage_ = 0;
    std::uint64_t place_ = 0;
    std::vector<std::uint32_t> ranks_;  // see among()
    Schedule schedule_;
    std::array<RangeMap<Cell>, 3> cells_;
    std::unordered_map<std::uint32_t, std::uint32_t> sent_;      // to a peer, so far
    std::unordered_map<std::uint32_t, std::uint32_t> received_;  // from a peer, so far
};

}  // namespace nexar::schedule
