#include "schedule/check/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/try.hpp"
#include "schedule/memory_parts.hpp"

namespace nexar::schedule {

namespace {

class RankPlaces {
public:
    RankPlaces(const Run& run, const EventGraph& graph, std::uint32_t rank)
        : run_(run), graph_(graph), rank_(rank), schedule_(run.schedules[rank]) {
        const Request& request = run.requests[rank];
        extent_ = memory_extent(run.algorithm.traits, {.world = request.world,
                                                       .count = request.chunks.total(),
                                                       .largest = request.chunks.largest(),
                                                       .segment = request.segment});
    }

    Result<void> check() {
        for (std::uint32_t i = 0; i < schedule_.steps.size(); ++i) {
            const Step& step = schedule_.steps[i];
            if (step.kind != Kind::send) continue;
            NEXAR_TRY(check_message(i));
            puts_.push_back({step.place, i});
        }
        NEXAR_TRY(check_overlaps());
        return check_phases();
    }

private:
    struct Put {
        std::uint64_t place = 0;
        std::uint32_t step = 0;
    };

    Error wrong(std::uint32_t step, const std::string& what) const {
        return run_.fault(rank_, fmt::format("{} {}", run_.describe(rank_, step), what));
    }

    static std::uint64_t piece(const Step& step) {
        return step.segments() > 1 ? step.segment : step.count();
    }

    Result<void> check_message(std::uint32_t i) const {
        const Step& send = schedule_.steps[i];
        const Step& receive = run_.step(send.peer, graph_.other_end(rank_, i));
        if (send.place != receive.place || send.stage != receive.stage)
            return wrong(i, fmt::format("is at place {} in stage {}, but its receive expects "
                                        "place {} in stage {}",
                                        send.place, send.stage, receive.place, receive.stage));
        if (send.stage >= run_.algorithm.traits.stages)
            return wrong(i, fmt::format("is in stage {}, which does not exist", send.stage));
        if (send.place > extent_ || piece(send) > extent_ - send.place)
            return wrong(i, fmt::format("exceeds the {} elements of a round", extent_));
        return {};
    }

    Result<void> check_overlaps() {
        std::ranges::sort(puts_, {}, &Put::place);
        std::uint64_t end = 0;
        std::uint32_t last = 0;
        for (const Put& put : puts_) {
            const Step& step = schedule_.steps[put.step];
            if (piece(step) == 0) continue;
            const Step& before = schedule_.steps[last];
            const bool same = before.place == step.place && before.from == step.from &&
                              before.stage == step.stage;
            if (put.place < end && !same)
                return wrong(put.step, fmt::format("overlaps {}", run_.describe(rank_, last)));
            end = std::max(end, put.place + piece(step));
            last = put.step;
        }
        return {};
    }

    /// Rounds run one after the other, except that the first phase of a round runs before the later
    /// phases of the round before it.
    Result<void> check_phases() const {
        const auto phases = phases_of(schedule_);
        for (std::uint32_t i = 0; i < schedule_.steps.size(); ++i) {
            for (const Dependency& d : schedule_.dependencies_of(i)) {
                if (d.step >= i || phases[d.step] > phases[i])
                    return wrong(i, fmt::format("runs before step {}, which it waits for", d.step));
                if (!d.pipelined && schedule_.steps[d.step].segments() > 1)
                    return wrong(i, fmt::format("waits for all rounds of step {}", d.step));
            }
        }
        return {};
    }

    const Run& run_;
    const EventGraph& graph_;
    std::uint32_t rank_;
    const Schedule& schedule_;
    std::uint64_t extent_ = 0;
    std::vector<Put> puts_;
};

}  // namespace

Result<void> check_places(const Run& run, const EventGraph& graph) {
    for (std::uint32_t rank = 0; rank < run.world(); ++rank)
        NEXAR_TRY(RankPlaces(run, graph, rank).check());
    return {};
}

}  // namespace nexar::schedule
