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

/// Turns a plain sequence of steps into a schedule. An algorithm adds steps in an order in which
/// they would be right if each ended before the next began; the builder finds from the slices which
/// of them really have to wait for which, so that all others run at the same time:
///
/// - a read waits for the last write of the same elements,
/// - a write waits for the reads since (of a send: for its release), or for the write before.
///
/// Dependencies that others imply are left out. Steps that pass the same slice on in the same
/// segments are pipelined. Messages are numbered per ordered pair in the order of adding: both ends
/// of a pair must add their common messages in the same order.
///
/// Steps without elements vanish, on both sides of a message, because its two counts are equal: so
/// tiny and uneven counts cost nothing. Signals are the exception.
class Builder {
public:
    using StepId = std::uint32_t;
    static constexpr StepId kNone = std::numeric_limits<StepId>::max();  // a step that vanished

    /// Steps run in segments of so many elements; 0 for whole slices.
    explicit Builder(std::uint64_t segment = 0) : segment_(segment) {}

    /// Elements of scratch that nothing else uses.
    Slice scratch(std::uint64_t count);

    StepId send(std::uint32_t peer, const Slice& from);
    StepId receive(std::uint32_t peer, const Slice& into);
    StepId receive_reduce(std::uint32_t peer, const Slice& into, const Slice& local,
                          compute::Side side);
    /// Nothing if both are the same slice.
    StepId copy(const Slice& from, const Slice& into);
    StepId reduce(const Slice& from, const Slice& into, const Slice& local, compute::Side side);

    /// Messages without elements: that they arrive is what they say.
    StepId send_signal(std::uint32_t peer);
    StepId receive_signal(std::uint32_t peer);

    /// The step that was added last also waits for the end of `earlier` ones, for a reason that
    /// slices do not show. Steps that vanished do not count.
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

    StepId add(Step step);
    void read(StepId step, const Slice& slice);
    void write(StepId step, const Slice& slice);
    void wait_for(const Access& earlier, const Slice& slice);
    void need(const Dependency& dependency);
    void leave_out_implied();
    bool implied(const Dependency& wanted, std::size_t first) const;

    std::uint64_t segment_;
    Schedule schedule_;
    std::array<RangeMap<Cell>, 3> cells_;
    std::unordered_map<std::uint32_t, std::uint32_t> sent_;      // to a peer, so far
    std::unordered_map<std::uint32_t, std::uint32_t> received_;  // from a peer, so far
};

}  // namespace nexar::schedule
