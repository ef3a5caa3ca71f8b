#pragma once

#include <nexar/node.hpp>
#include <vector>

#include "base/config.hpp"
#include "runtime/progress.hpp"

namespace nexar::runtime {

/// The options of the loop that drives a node with these options.
Progress::Options progress_options(const NodeOptions& options) noexcept;

/// The values of the settings `progress` and `spin` that `options` sets, for the source `code`.
std::vector<NamedValue> progress_settings(const NodeOptions& options);

/// Takes `waiting` and `spin` from the settings.
NodeOptions with_progress_settings(NodeOptions options, const Config& config);

}  // namespace nexar::runtime
