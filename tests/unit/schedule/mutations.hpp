#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/algorithm.hpp"

namespace nexar::schedule::testing {

/// One planted error: what it is, and the schedules with it.
struct Mutation {
    std::string what;
    std::vector<Schedule> schedules;
    /// Where a dependency was left out: of which step, on which.
    std::uint32_t rank = 0;
    std::uint32_t step = 0;
    Dependency dependency{};
};

/// Whether the step still starts after what it waited for, because messages through other ranks say
/// so. An argument of its own: a search along dependencies and data, without the checker's graph.
bool ordered_by_messages(const Mutation& left_out);

/// The kinds of errors that are planted. Each is planted in every place where it changes something.
enum class Planted {
    wrong_peer,
    wrong_message,
    slice_moved,      // a slice begins one element later, or earlier
    slice_shortened,  // at both ends of a message, so that the counts still fit
    dependency_left_out,
    release_not_awaited,  // finished is waited for instead of released
    side_exchanged,
    slices_exchanged,   // two steps of a kind read, or write, each other's slice
    step_left_out,      // with its other end, so that messages still fit
    pipelined_wrongly,  // a dependency on the whole step becomes one on its pieces
};

const std::vector<Planted>& all_planted();
std::string name(Planted planted);

std::vector<Mutation> mutations(Planted planted, const std::vector<Schedule>& schedules);

}  // namespace nexar::schedule::testing
