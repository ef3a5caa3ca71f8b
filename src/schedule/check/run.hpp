#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <span>
#include <string>

#include "schedule/algorithm.hpp"

namespace nexar::schedule {

/// The collective that the parts of the checker examine.
struct Run {
    const Algorithm& algorithm;
    std::span<const Request> requests;
    std::span<const Schedule> schedules;

    std::uint32_t world() const noexcept { return static_cast<std::uint32_t>(schedules.size()); }
    /// What the algorithm guarantees for these hosts of the ranks.
    Traits traits() const { return traits_for(algorithm, requests.front().links.levels(world())); }
    const Step& step(std::uint32_t rank, std::uint32_t step) const {
        return schedules[rank].steps[step];
    }

    /// "step 3 (send output[0+4] to 2 #0) of rank 1"
    std::string describe(std::uint32_t rank, std::uint32_t step) const;

    /// An error of this rank; `what` must name the step.
    Error fault(std::uint32_t rank, const std::string& what) const;
};

}  // namespace nexar::schedule
