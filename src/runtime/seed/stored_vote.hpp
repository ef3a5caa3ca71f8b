#pragma once

#include "wire/seed_messages.hpp"

namespace nexar::runtime {

/// Removes the vote on the next view from the state of a seed.
inline void clear_vote(wire::StoredSeed& state) {
    state.promised_round = 0;
    state.promised_by = {};
    state.accepted_round = 0;
    state.accepted_by = {};
    state.accepted.clear();
}

}  // namespace nexar::runtime
