#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// Traits::window of algorithms that use Request::window.
inline constexpr std::uint32_t kWindowAsRequested = std::numeric_limits<std::uint32_t>::max();

/// What an algorithm guarantees; check/checker.hpp verifies it.
struct Traits {
    bool keeps_order = false;   // folds in the order of ranks: any associative operator works
    bool canonical = false;     // folds along the tree of fold_tree.hpp
    bool takes_counts = false;  // supports the v-variants: chunks of different sizes
    bool segments = false;      // pipelines in pieces of Request::segment
    std::uint32_t window = 0;   // most messages in flight in each direction; 0: no limit
    bool needs_tree = false;    // the caller must fill in Request::tree
};

/// One way to run an operation.
struct Algorithm {
    Collective operation;
    std::string_view name;
    Traits traits;
    Schedule (*build)(const Request& request);
};

}  // namespace nexar::schedule
