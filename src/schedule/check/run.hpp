#pragma once

#include <cstdint>
#include <nexar/error.hpp>
#include <span>
#include <string>

#include "schedule/algorithm.hpp"

namespace nexar::schedule {

/// What is being checked, for all parts of the checker.
struct Run {
    const Algorithm& algorithm;
    std::span<const Request> requests;
    std::span<const Schedule> schedules;

    std::uint32_t world() const noexcept { return static_cast<std::uint32_t>(schedules.size()); }
    const Step& step(std::uint32_t rank, std::uint32_t step) const {
        return schedules[rank].steps[step];
    }

    /// "step 3 (send output[0+4] to 2 #0) of rank 1"
    std::string describe(std::uint32_t rank, std::uint32_t step) const;

    /// The error of a rank; what must say which step.
    Error fault(std::uint32_t rank, const std::string& what) const;
};

}  // namespace nexar::schedule
