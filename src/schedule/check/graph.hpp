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

/// The events of all ranks' steps (start, finished, and for sends released) and the events that
/// each of them waits for:
///
/// - start: the events that the step depends on,
/// - finished: the start of the same step; for a message also the start of its other end, because
///   sends are synchronous and a receive needs its data,
/// - released: finished.
///
/// In memory (see Medium) a send ends with its copy, so it does not wait for its receive.
///
/// An event happens once everything that it waits for has happened. So there is a deadlock if and
/// only if the graph has a cycle, whatever the network does.
///
/// Segments have no events of their own; the graph says enough about them. All edges lead from
/// piece k to piece k, except dependencies that are not pipelined (from all pieces to the first)
/// and the starts within a step (from k to k+1). Deadlock: a cycle between pieces is a cycle here
/// once their numbers are ignored; and a cycle here implies one between pieces, because after a
/// dependency on a whole step every piece number can be reached. Order: a path here orders piece k
/// before piece k; it orders all pieces before all pieces if and only if it contains a dependency
/// that is not pipelined. That is what `whole` means below.
class EventGraph {
public:
    using EventId = std::uint32_t;
    static constexpr std::uint32_t kNone = MessageEnds::kNone;

    /// `run` must have passed the check of form, except for the matching of messages, and must
    /// outlive the graph.
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

    /// All events, each after those it waits for.
    std::span<const EventId> order() const noexcept { return order_; }
    std::uint32_t position(EventId event) const { return position_[event]; }

    /// Returns true if `before` always happens before `after`; with `whole`, for all pieces of
    /// both.
    bool ordered(EventId before, EventId after, bool whole) const;

private:
    struct Edge {
        EventId from;
        bool whole;  // from all pieces to all pieces
    };

    std::uint32_t at(std::uint32_t rank, std::uint32_t step) const { return first_[rank] + step; }
    std::optional<Edge> predecessor(EventId event, std::uint32_t i) const;
    Result<void> expect_fit(std::uint32_t rank, std::uint32_t step) const;
    bool reaches(EventId before, EventId after, bool whole, bool within_rank) const;
    std::string name(EventId event) const;

    const Run& run_;
    std::vector<std::uint32_t> first_;  // index of a rank's first step among all steps
    std::vector<std::uint32_t> rank_;   // per step
    MessageEnds ends_;
    std::vector<EventId> order_;
    std::vector<std::uint32_t> position_;  // per event, in order_

    struct Visit {
        EventId event;
        bool whole;
    };
    mutable std::vector<std::uint32_t>
        seen_;  // per event and `whole`: the last search that visited it
    mutable std::uint32_t search_ = 0;
    mutable std::vector<Visit> stack_;
};

}  // namespace nexar::schedule
