#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "schedule/request.hpp"
#include "schedule/schedule.hpp"
#include "schedule/stretch.hpp"

namespace nexar::schedule {

/// Traits::window of algorithms that use Request::window.
inline constexpr std::uint32_t kWindowAsRequested = std::numeric_limits<std::uint32_t>::max();

/// How the messages of an algorithm travel.
enum class Medium : std::uint8_t {
    messages,  // over links
    /// Through memory: the sender copies a slice into its segment, which all ranks of the host can
    /// read, and the receivers read it there. Needs Profile::memory. With a segment the steps run
    /// in rounds: round k runs piece k of every step, in the order of steps.
    memory,
};

/// What a rank puts into its segment in one round of an algorithm in memory.
enum class Puts : std::uint8_t {
    nothing,
    vector,  // a piece of the whole vector
    chunk,   // a piece of one chunk
    chunks,  // a piece of one chunk per rank, each in a place of its own
};

/// What an algorithm guarantees; check/checker.hpp verifies it.
struct Traits {
    bool keeps_order = false;   // folds in the order of ranks: any associative operator works
    bool canonical = false;     // folds along the tree of fold_tree.hpp
    bool takes_counts = false;  // supports the v-variants: chunks of different sizes
    bool segments = false;      // pipelines in pieces of Request::segment
    std::uint32_t window = 0;   // most messages in flight in each direction; 0: no limit
    bool needs_tree = false;    // for sparse topologies: uses Request::tree
    Medium medium = Medium::messages;
    std::uint32_t stages = 1;  // in memory: the number of stages of messages
    Puts puts = Puts::nothing;
    /// Works within hosts and between them, see Request::links. Where keeps_order and canonical are
    /// set, they hold only for some placements of the ranks: see traits_for().
    bool two_level = false;
};

/// One way to run an operation.
struct Algorithm {
    Collective operation;
    std::string_view name;
    Traits traits;
    Schedule (*build)(const Request& request);
    Peers peers = Peers::few;
};

/// What an algorithm guarantees for ranks that are spread over hosts like this. A two-level
/// algorithm folds host by host.
constexpr Traits traits_for(const Algorithm& algorithm, const Levels& levels) noexcept {
    Traits traits = algorithm.traits;
    if (!traits.two_level) return traits;
    traits.keeps_order = traits.keeps_order && levels.consecutive;
    traits.canonical = traits.canonical && levels.canonical;
    return traits;
}

}  // namespace nexar::schedule
