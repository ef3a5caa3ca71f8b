#include "schedule/memory_parts.hpp"

#include <algorithm>

namespace nexar::schedule {

std::uint64_t longest_put(const Traits& traits, const MemoryUse& use) noexcept {
    switch (traits.puts) {
        case Puts::nothing:
            return 0;
        case Puts::vector:
            return use.count;
        case Puts::chunk:
        case Puts::chunks:
            return use.largest;
    }
    return 0;
}

std::uint64_t memory_extent(const Traits& traits, const MemoryUse& use) noexcept {
    const std::uint64_t whole = longest_put(traits, use);
    const std::uint64_t piece = use.segment == 0 ? whole : std::min(use.segment, whole);
    return traits.puts == Puts::chunks ? piece * use.world : piece;
}

std::uint64_t memory_rounds(const Traits& traits, const MemoryUse& use) noexcept {
    const std::uint64_t whole = longest_put(traits, use);
    if (use.segment == 0 || whole <= use.segment) return 1;
    return whole / use.segment + (whole % use.segment != 0 ? 1 : 0);
}

std::vector<std::uint32_t> phases_of(const Schedule& schedule) {
    std::vector<std::uint32_t> phases(schedule.steps.size());
    for (std::size_t i = 0; i < phases.size(); ++i) {
        const Step& step = schedule.steps[i];
        if (is_message(step.kind)) {
            phases[i] = step.stage + (receives(step.kind) ? 1 : 0);
            continue;
        }
        phases[i] = 1;
        for (const Dependency& d : schedule.dependencies_of(i))
            if (d.step < i) phases[i] = std::max(phases[i], phases[d.step]);
    }
    return phases;
}

std::uint64_t place_of(std::uint32_t i, const Request& request) {
    const std::uint64_t whole = request.chunks.largest();
    return i * (request.segment == 0 ? whole : std::min(request.segment, whole));
}

}  // namespace nexar::schedule
