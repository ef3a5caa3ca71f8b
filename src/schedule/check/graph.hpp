#pragma once

#include <cstdint>
#include <nexar/result.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "schedule/check/run.hpp"
#include "schedule/message_ends.hpp"

namespace nexar::schedule {

/// The events of all ranks' steps (start, finished, and released of sends) and what each of them
/// waits for:
///
/// - a start: for the events that the step depends on,
/// - finished: for the own start; of a message also for the start of its other end, because a send
///   is synchronous and a receive needs its data,
/// - released: for finished.
///
/// An event happens once all that it waits for happened. So there is a deadlock if and only if the
/// graph has a cycle, whatever the network does.
///
/// Segments are not events of their own; the graph says enough about them. All edges lead from
/// piece k to piece k, except a dependency that is not pipelined (from all pieces to the first) and
/// the starts within a step (from k to k+1). Deadlock: a cycle between pieces becomes a cycle here
/// by forgetting their numbers; and a cycle here gives one between pieces, because after a
/// dependency on the whole of a step every piece number can be reached. Order: a path here orders
/// piece k before piece k; it orders all pieces before all pieces if and only if it contains a
/// dependency that is not pipelined. That is what `whole` asks for below.
class EventGraph {
public:
    using EventId = std::uint32_t;
    static constexpr std::uint32_t kNone = MessageEnds::kNone;

    /// `run` must be of right form otherwise (see check_form) and outlive the graph.
    explicit EventGraph(const Run& run);

    /// Finds the other end of every message.
    Result<void> match();

    /// Finds an order in which the events can happen; after match().
    Result<void> sort();

    EventId start(std::uint32_t rank, std::uint32_t step) const { return 3 * at(rank, step); }
    EventId finished(std::uint32_t rank, std::uint32_t step) const { return start(rank, step) + 1; }
    EventId released(std::uint32_t rank, std::uint32_t step) const { return start(rank, step) + 2; }
    bool is_start(EventId event) const noexcept { return event % 3 == 0; }
    bool is_finished(EventId event) const noexcept { return event % 3 == 1; }
    std::uint32_t rank_of(EventId event) const { return rank_[event / 3]; }
    std::uint32_t step_of(EventId event) const { return event / 3 - first_[rank_of(event)]; }

    /// The step of the peer that is the other end of this message.
    std::uint32_t other_end(std::uint32_t rank, std::uint32_t step) const {
        return ends_.other[rank][step];
    }

    /// All events, each after those that it waits for.
    std::span<const EventId> order() const noexcept { return order_; }
    std::uint32_t position(EventId event) const { return position_[event]; }

    /// Whether `before` always happens before `after`; with `whole` for all pieces of both.
    bool ordered(EventId before, EventId after, bool whole) const;

private:
    struct Edge {
        EventId from;
        bool whole;  // leads from all pieces to all
    };

    std::uint32_t at(std::uint32_t rank, std::uint32_t step) const { return first_[rank] + step; }
    std::optional<Edge> predecessor(EventId event, std::uint32_t i) const;
    Result<void> expect_fit(std::uint32_t rank, std::uint32_t step) const;
    bool reaches(EventId before, EventId after, bool whole, bool within_rank) const;
    std::string name(EventId event) const;

    const Run& run_;
    std::vector<std::uint32_t> first_;  // of a rank's steps among all
    std::vector<std::uint32_t> rank_;   // per step
    MessageEnds ends_;
    std::vector<EventId> order_;
    std::vector<std::uint32_t> position_;  // per event, in order_

    struct Visit {
        EventId event;
        bool whole;
    };
    mutable std::vector<std::uint32_t> seen_;  // per event and wholeness: the last search there
    mutable std::uint32_t search_ = 0;
    mutable std::vector<Visit> stack_;
};

}  // namespace nexar::schedule
