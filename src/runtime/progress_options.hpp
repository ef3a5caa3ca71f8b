#pragma once

#include <cstddef>
#include <nexar/node.hpp>
#include <vector>

#include "base/config.hpp"
#include "runtime/progress.hpp"
#include "schedule/links.hpp"

namespace nexar::runtime {

/// The options of the loop that drives a node with these options.
Progress::Options progress_options(const NodeOptions& options) noexcept;

/// The values of the settings `progress` and `spin` that `options` sets, for the source `code`.
std::vector<NamedValue> progress_settings(const NodeOptions& options);

/// Takes `waiting` and `spin` from the settings.
NodeOptions with_progress_settings(NodeOptions options, const Config& config);

/// The number of processes on the host of rank `me`, for Progress::set_local_ranks(). `here`
/// members are nodes of this process, whose loop drives them with one thread at a time.
std::size_t processes_on_host(const schedule::Links& links, std::size_t members, std::size_t me,
                              std::size_t here) noexcept;

}  // namespace nexar::runtime
