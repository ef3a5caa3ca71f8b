#include "schedule/picture/rounds.hpp"

#include <algorithm>

namespace nexar::schedule {

namespace {

// Ends the search in schedules that wait in a circle.
constexpr int kMostPasses = 4096;

}  // namespace

Rounds::Rounds(std::span<const Schedule> ranks)
    : ranks_(ranks), ends_(match_messages(ranks)), rounds_(ranks.size()) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
        rounds_[rank].resize(ranks[rank].steps.size());
    for (int passes = 0; advance() && passes < kMostPasses; ++passes) {
    }
}

std::uint32_t Rounds::last() const noexcept {
    std::uint32_t last = 0;
    for (const auto& rounds : rounds_)
        for (const std::uint32_t round : rounds) last = std::max(last, round);
    return last;
}

/// One pass over all steps; returns false when nothing changed. A schedule without cycles needs as
/// many passes as it has rounds.
bool Rounds::advance() {
    bool changed = false;
    for (std::uint32_t rank = 0; rank < ranks_.size(); ++rank) {
        for (std::size_t i = 0; i < ranks_[rank].steps.size(); ++i) {
            const Step& step = ranks_[rank].steps[i];
            std::uint32_t round = 0;
            for (const Dependency& dependency : ranks_[rank].dependencies_of(i))
                round = std::max(round, rounds_[rank][dependency.step]);
            if (is_message(step.kind)) ++round;
            if (receives(step.kind))
                round = std::max(round, rounds_[step.peer][other_end(rank, i)]);
            changed |= round != rounds_[rank][i];
            rounds_[rank][i] = round;
        }
    }
    return changed;
}

}  // namespace nexar::schedule
