#pragma once

#include <cstdint>
#include <limits>
#include <string_view>

#include "schedule/request.hpp"
#include "schedule/schedule.hpp"

namespace nexar::schedule {

/// Traits::window of algorithms that go by Request::window.
inline constexpr std::uint32_t kWindowAsRequested = std::numeric_limits<std::uint32_t>::max();

/// What an algorithm promises; check/checker.hpp holds it to that.
struct Traits {
    bool keeps_order = false;   // folds in the order of ranks: right for any associative operator
    bool canonical = false;     // folds by the tree of fold_tree.hpp
    bool takes_counts = false;  // chunks of any sizes, known as the v-variants know them
    bool segments = false;      // pipelines Request::segment
    std::uint32_t window = 0;   // at most so many messages each way at a time; 0: any number
    bool needs_tree = false;    // Request::tree must be filled in
};

/// One way to do an operation.
struct Algorithm {
    Collective operation;
    std::string_view name;
    Traits traits;
    Schedule (*build)(const Request& request);
};

}  // namespace nexar::schedule
