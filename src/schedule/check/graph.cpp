#include "schedule/check/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/try.hpp"

namespace nexar::schedule {

EventGraph::EventGraph(const Run& run) : run_(run) {
    std::uint32_t steps = 0;
    for (std::uint32_t rank = 0; rank < run.world(); ++rank) {
        first_.push_back(steps);
        const auto own = static_cast<std::uint32_t>(run.schedules[rank].steps.size());
        rank_.insert(rank_.end(), own, rank);
        steps += own;
    }
    position_.assign(std::size_t{3} * steps, kNone);
    seen_.assign(std::size_t{6} * steps, 0);
}

Result<void> EventGraph::match() {
    ends_ = match_messages(run_.schedules);
    if (const auto& alone = ends_.unmatched)
        return run_.fault(alone->rank, fmt::format("{} has no other end, or more than one",
                                                   run_.describe(alone->rank, alone->step)));
    for (std::uint32_t rank = 0; rank < run_.world(); ++rank) {
        for (std::uint32_t i = 0; i < run_.schedules[rank].steps.size(); ++i)
            if (run_.step(rank, i).kind == Kind::send) NEXAR_TRY(expect_fit(rank, i));
    }
    return {};
}

Result<void> EventGraph::expect_fit(std::uint32_t rank, std::uint32_t step) const {
    const Step& send = run_.step(rank, step);
    const Step& receive = run_.step(send.peer, other_end(rank, step));
    if (send.count() == receive.count() && send.segment == receive.segment &&
        send.codec == receive.codec)
        return {};
    return run_.fault(rank, fmt::format("{} does not match {} in count, segment or codec",
                                        run_.describe(rank, step),
                                        run_.describe(send.peer, other_end(rank, step))));
}

std::optional<EventGraph::Edge> EventGraph::predecessor(EventId event, std::uint32_t i) const {
    const std::uint32_t rank = rank_of(event);
    const std::uint32_t step = step_of(event);
    if (is_start(event)) {
        const Step& s = run_.step(rank, step);
        if (i >= s.dependency_count) return std::nullopt;
        const Dependency& d = run_.schedules[rank].dependencies[s.first_dependency + i];
        return Edge{
            d.event == Milestone::finished ? finished(rank, d.step) : released(rank, d.step),
            !d.pipelined};
    }
    if (i == 0) return Edge{event - 1, false};
    const std::uint32_t other = other_end(rank, step);
    if (i == 1 && is_finished(event) && other != kNone) {
        const Step& s = run_.step(rank, step);
        if (run_.algorithm.traits.medium == Medium::messages)
            return Edge{start(s.peer, other), false};
        if (receives(s.kind)) return Edge{finished(s.peer, other), false};
    }
    return std::nullopt;
}

Result<void> EventGraph::sort() {
    enum : std::uint8_t { untouched, open, placed };
    struct Frame {
        EventId event;
        std::uint32_t next;
    };
    std::vector<std::uint8_t> state(position_.size(), untouched);
    std::vector<Frame> path;
    order_.reserve(position_.size());
    for (EventId root = 0; root < position_.size(); ++root) {
        if (state[root] != untouched) continue;
        state[root] = open;
        path.push_back({root, 0});
        while (!path.empty()) {
            const auto edge = predecessor(path.back().event, path.back().next++);
            if (!edge) {
                const EventId event = path.back().event;
                state[event] = placed;
                position_[event] = static_cast<std::uint32_t>(order_.size());
                order_.push_back(event);
                path.pop_back();
            } else if (state[edge->from] == untouched) {
                state[edge->from] = open;
                path.push_back({edge->from, 0});
            } else if (state[edge->from] == open) {
                std::string cycle;
                auto frame = std::find_if(path.begin(), path.end(),
                                          [&](const Frame& f) { return f.event == edge->from; });
                for (; frame != path.end() && cycle.size() < 2000; ++frame)
                    cycle += name(frame->event) + ", which waits for ";
                return run_.fault(rank_of(edge->from), "deadlock: " + cycle + "the first");
            }
        }
    }
    return {};
}

std::string EventGraph::name(EventId event) const {
    constexpr std::array<const char*, 3> kEvents{"start", "end", "release"};
    return fmt::format("the {} of {}", kEvents.at(event % 3),
                       run_.describe(rank_of(event), step_of(event)));
}

bool EventGraph::ordered(EventId before, EventId after, bool whole) const {
    // Dependencies of the same rank usually suffice and are near; search the other ranks only if
    // they do not.
    return reaches(before, after, whole, true) || reaches(before, after, whole, false);
}

bool EventGraph::reaches(EventId before, EventId after, bool whole, bool within_rank) const {
    ++search_;
    stack_.assign(1, {after, !whole});
    while (!stack_.empty()) {
        const Visit visit = stack_.back();
        stack_.pop_back();
        for (std::uint32_t i = 0;; ++i) {
            const auto edge = predecessor(visit.event, i);
            if (!edge) break;
            const bool enough = visit.whole || edge->whole;
            if (edge->from == before && enough) return true;
            if (position_[edge->from] <= position_[before]) continue;
            if (within_rank && rank_of(edge->from) != rank_of(before)) continue;
            std::uint32_t& seen = seen_[std::size_t{2} * edge->from + (enough ? 1 : 0)];
            if (seen == search_) continue;
            seen = search_;
            stack_.push_back({edge->from, enough});
        }
    }
    return false;
}

}  // namespace nexar::schedule
