#pragma once

#include <cstdint>

namespace nexar::engine {

/// Bugs that a test plants in Agreements, to prove that its model finds them.
enum class PlantedBug : std::uint8_t {
    none,
    decide_early,         // without the acknowledgement of every participant
    ignore_stored,        // propose a new value although one is stored
    act_in_old_epoch,     // use states and acknowledgements of an older view
    forget_decisions,     // do not keep decided values
    acknowledge_only,     // acknowledge a proposal without storing it
    lost_locally,         // return the ranks lost in the own view
    skip_states,          // propose without the state of every participant
    silent_after_return,  // a rank that returned answers nobody
    silent_in_new_view,   // do not send the state again in a new view
};

#ifdef NEXAR_PLANTED_BUGS
inline PlantedBug planted_bug = PlantedBug::none;
inline bool planted(PlantedBug bug) noexcept {
    return planted_bug == bug;
}
#else
constexpr bool planted(PlantedBug /*bug*/) noexcept {
    return false;
}
#endif

}  // namespace nexar::engine
