#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/algorithm.hpp"

namespace nexar::schedule::testing {

/// One planted error: its description, and the schedules that contain it.
struct Mutation {
    std::string what;
    std::vector<Schedule> schedules;
    /// If a dependency was removed: which one, and from which step.
    std::uint32_t rank = 0;
    std::uint32_t step = 0;
    Dependency dependency{};
};

/// Returns true if messages through other ranks still order the step after what it waited for.
/// Searches along dependencies and data, independently of the checker's graph.
bool ordered_by_messages(const Mutation& left_out);

/// The kinds of planted errors. Each is planted wherever it changes something.
enum class Planted {
    wrong_peer,
    wrong_message,
    slice_moved,      // a slice begins one element later, or earlier
    slice_shortened,  // at both ends of a message, so that the counts still match
    dependency_left_out,
    release_not_awaited,  // waits for finished instead of released
    side_exchanged,
    slices_exchanged,   // two steps of one kind swap the slices that they read or write
    step_left_out,      // with its other end, so that messages still match
    pipelined_wrongly,  // a dependency on the whole step becomes one on its pieces
    place_moved,        // in memory: one end of a message expects another place
    stage_changed,      // in memory: one end of a message expects another stage
};

const std::vector<Planted>& all_planted();
std::string name(Planted planted);

std::vector<Mutation> mutations(Planted planted, const std::vector<Schedule>& schedules);

}  // namespace nexar::schedule::testing
